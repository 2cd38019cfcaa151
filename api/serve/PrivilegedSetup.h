#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/auth/oidc/IssuerConfig.h"
#include "api/config/ServeConfig.h"
#include "api/serve/GpuSetup.h"
#include "api/serve/runtimes/RuntimeFactory.h"
#include "base/Fd.h"
#include "base/host/Instance.h"
#include "controller/contract/Quotas.h"
#include "controller/spec/PoolSpec.h"

namespace hearth::program {

/// The results of the set-up as root, before the first thread.
struct PrivilegedSetup {
    Instance instance;
    bool used_before = false;  ///< seen before anything was made for this start
    Fd use;                    ///< usedPath(), empty, at the first start: noteUse()
    std::unique_ptr<PreparedRuntime> runtime;
    GpuGround gpus;
    Fd lock;  ///< goes first: the launcher, ending, removes the folder that nobody needs
    std::vector<controller::Pool> declared;
    std::vector<controller::Pool> declared_once;
    std::map<std::string, controller::QuotaSpec> quotas;
    std::vector<auth::IssuerConfig> issuers;
};

/// Takes the instance, prepares the runtime and gives root up. Only for a process with one thread.
/// Throws Error and std::system_error: what to do about it is for the person who starts the server.
/// `given`: in place of the configured runtime.
PrivilegedSetup prepare(const cli::ServeConfig& config, const RuntimeFactory* given);
/// Once the state is there: from now on an instance without it has lost it.
void noteUse(PrivilegedSetup& ground) noexcept;

}  // namespace hearth::program
