#pragma once

#include "api/auth/Authenticator.h"
#include "api/auth/ProtectedResource.h"
#include "api/auth/RateLimits.h"
#include "api/auth/WorkerShares.h"
#include "api/config/ServeConfig.h"
#include "api/http/Handler.h"
#include "api/mcp/http/McpEndpoints.h"
#include "api/mcp/seeds/http/PlainTools.h"
#include "api/rest/RestHandler.h"
#include "controller/Services.h"

namespace hearth::program {

/// Everything that clients can ask for, by path: REST, MCP's endpoints, tools without MCP.
class Endpoints final : public api::Handler {
public:
    /// All references outlive it, and the front must stop before it goes.
    Endpoints(const cli::ServeConfig& config, const controller::Services& services,
              const auth::Authenticator& authenticator, const auth::ProtectedResource& resource,
              const auth::WorkerShares& shares, const auth::RateLimits& limits);

    api::Response handle(api::Request& request) override;

private:
    /// Hearth's own endpoint at the root, those of the seeds under /compat; with --compat a seed's
    /// clients find theirs at the root, and Hearth's own is under /hearth.
    void mount(const cli::ServeConfig& config, const controller::Services& services);

    const auth::ProtectedResource& resource_;
    rest::RestHandler rest_;
    mcp::McpEndpoints mcp_;
    mcp::PlainTools plain_tools_;
};

}  // namespace hearth::program
