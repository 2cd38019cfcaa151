#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/auth/oidc/IssuerConfig.h"
#include "api/config/ServeConfig.h"
#include "api/mcp/http/ChangeNotifier.h"
#include "api/mcp/server/Catalog.h"
#include "api/serve/GpuSetup.h"
#include "api/serve/runtimes/RuntimeFactory.h"
#include "base/Fd.h"
#include "base/host/Instance.h"
#include "controller/contract/Quotas.h"
#include "controller/spec/PoolSpec.h"

namespace hearth::program {

/// Parts of a server that a test program replaces; an empty one is the product's own.
struct Replacements {
    const RuntimeFactory* runtime = nullptr;
    /// Makes the catalog of the server's own MCP endpoint.
    std::function<mcp::Catalog(const controller::Services&, mcp::ChangeNotifier&)> catalog{};
};

/// The results of the set-up as root, before the first thread.
struct PrivilegedSetup {
    Replacements replaced;
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
PrivilegedSetup prepare(const cli::ServeConfig& config, const Replacements& replaced);
/// Marks the instance as used. Call when the state exists; if it is missing later, it was lost.
void noteUse(PrivilegedSetup& ground) noexcept;

}  // namespace hearth::program
