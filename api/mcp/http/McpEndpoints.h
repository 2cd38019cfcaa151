#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/http/Handler.h"
#include "api/mcp/http/McpContext.h"
#include "api/mcp/server/McpServer.h"

namespace hearth::mcp {

/// All MCP endpoints of a server: Streamable HTTP on `{prefix}/mcp`, HTTP+SSE on `{prefix}/sse` and
/// `{prefix}/messages`, each with or without a slash at its end; never a redirect.
class McpEndpoints final : public api::Handler {
public:
    /// All references must outlive this object; the front must stop before it is destroyed.
    McpEndpoints(const controller::Services& services, const auth::Authenticator& authenticator,
                 const auth::WorkerShares& shares, const auth::RateLimits& limits,
                 SessionRevocations& revocations, McpOptions options = {});

    /// Offers a catalog under a prefix: "" or "/compat/s0". Called before the first request. A
    /// prefix that is mounted already gets the new catalog.
    void mount(const std::string& prefix, Catalog catalog);
    /// True if a path belongs to one of the endpoints.
    bool takes(const std::string& path) const { return routes_.contains(path); }
    api::Response handle(api::Request& request) override;

    ChangeNotifier& notifier() { return context_.notifier; }

private:
    std::vector<std::unique_ptr<McpServer>> servers_;  ///< before the context: its calls use them
    McpContext context_;
    std::vector<std::unique_ptr<api::Handler>> handlers_;
    std::map<std::string, api::Handler*, std::less<>> routes_;
};

}  // namespace hearth::mcp
