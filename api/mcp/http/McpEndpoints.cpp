#include "api/mcp/http/McpEndpoints.h"

#include <utility>

#include "api/mcp/http/McpHandler.h"
#include "api/mcp/http/SseTransport.h"

namespace hearth::mcp {

McpEndpoints::McpEndpoints(const controller::Services& services,
                           const auth::Authenticator& authenticator,
                           const auth::WorkerShares& shares, const auth::RateLimits& limits,
                           SessionRevocations& revocations, McpOptions options)
    : context_(services, authenticator, shares, limits, revocations, options) {}

void McpEndpoints::mount(const std::string& prefix, Catalog catalog) {
    McpServer& server = *servers_.emplace_back(
        std::make_unique<McpServer>(context_.services, context_.waiting, std::move(catalog)));
    api::Handler& streamable =
        *handlers_.emplace_back(std::make_unique<McpHandler>(context_, server));
    api::Handler& events = *handlers_.emplace_back(
        std::make_unique<SseTransport>(context_, server, prefix + "/messages"));
    for (const char* end : {"", "/"}) {
        routes_[prefix + "/mcp" + end] = &streamable;
        routes_[prefix + "/sse" + end] = &events;
        routes_[prefix + "/messages" + end] = &events;
    }
}

api::Response McpEndpoints::handle(api::Request& request) {
    api::Response response = routes_.at(request.path())->handle(request);
    if (response.route.empty()) response.route = "/mcp";
    return response;
}

}  // namespace hearth::mcp
