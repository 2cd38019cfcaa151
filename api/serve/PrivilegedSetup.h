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
    bool used_before = false;  ///< read before this start made anything
    Fd use;                    ///< usedPath(), still empty, at the first start: noteUse()
    std::unique_ptr<PreparedRuntime> runtime;
    GpuGround gpus;
    Fd lock;  ///< released first: the ending launcher then removes the unused folder
    std::vector<controller::Pool> declared;
    std::vector<controller::Pool> declared_once;
    std::map<std::string, controller::QuotaSpec> quotas;
    std::vector<auth::IssuerConfig> issuers;
};

/// Takes the instance, prepares the runtime and gives up root. Only for a process with one thread.
/// Throws Error and std::system_error, with hints for the person who starts the server.
/// `given`: replaces the configured runtime.
PrivilegedSetup prepare(const cli::ServeConfig& config, const RuntimeFactory* given);
/// Marks the instance as used. Call when the state exists; if it is missing later, it was lost.
void noteUse(PrivilegedSetup& ground) noexcept;

}  // namespace hearth::program
