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

/// All endpoints for clients, by path: REST, MCP, tools without MCP.
class Endpoints final : public api::Handler {
public:
    /// All references must outlive it, and the front must stop before it is destroyed.
    Endpoints(const cli::ServeConfig& config, const controller::Services& services,
              const auth::Authenticator& authenticator, const auth::ProtectedResource& resource,
              const auth::WorkerShares& shares, const auth::RateLimits& limits,
              mcp::SessionRevocations& revocations);

    api::Response handle(api::Request& request) override;

    mcp::McpEndpoints& mcp() { return mcp_; }

private:
    /// Mounts Hearth's own endpoint at the root and the seeds' under /compat. With --compat that
    /// seed's endpoint is at the root, and Hearth's own is under /hearth.
    void mount(const cli::ServeConfig& config, const controller::Services& services);

    const auth::ProtectedResource& resource_;
    rest::RestHandler rest_;
    mcp::McpEndpoints mcp_;
    mcp::PlainTools plain_tools_;
};

}  // namespace hearth::program
