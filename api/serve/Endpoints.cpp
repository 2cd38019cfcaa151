#include "api/serve/Endpoints.h"

#include "api/console/ConsolePages.h"
#include "api/mcp/seeds/Seeds.h"

namespace hearth::program {

Endpoints::Endpoints(const cli::ServeConfig& config, const controller::Services& services,
                     const auth::Authenticator& authenticator,
                     const auth::ProtectedResource& resource, const auth::WorkerShares& shares,
                     const auth::RateLimits& limits, mcp::SessionRevocations& revocations)
    : resource_(resource),
      rest_(services, authenticator, shares, limits),
      mcp_(services, authenticator, shares, limits, revocations),
      plain_tools_(services, authenticator, shares, limits,
                   config.compat.value.empty() ? "s1" : *config.compat) {
    mount(config, services);
}

api::Response Endpoints::handle(api::Request& request) {
    const std::string& path = request.path();
    if (mcp_.takes(path)) return mcp_.handle(request);
    if (std::optional<api::Response> page = console::consolePage(request)) return std::move(*page);
    if (std::optional<api::Response> told = resource_.answer(request)) return std::move(*told);
    return mcp::PlainTools::takes(path) ? plain_tools_.handle(request) : rest_.handle(request);
}

void Endpoints::mount(const cli::ServeConfig& config, const controller::Services& services) {
    const std::string& compat = *config.compat;
    mcp_.mount(compat.empty() ? "" : "/hearth", mcp::nativeCatalog(services));
    for (const mcp::seeds::Seed& seed : mcp::seeds::seeds(services)) {
        for (const std::string& prefix : {"/compat/" + seed.name, std::string()}) {
            if (prefix.empty() && seed.name != compat) continue;
            mcp_.mount(prefix, {.server_info = seed.server_info,
                                .instructions = seed.instructions,
                                .tools = mcp::Toolbox(services, seed.tools)});
        }
    }
}

}  // namespace hearth::program
