#pragma once

#include <string>

#include "api/http/Handler.h"
#include "api/mcp/http/McpContext.h"
#include "api/mcp/http/ReplyAssembler.h"
#include "api/mcp/server/McpServer.h"

namespace hearth::mcp {

/// One MCP endpoint over Streamable HTTP, for both eras, which it distinguishes by each request's
/// body: POST, GET (a session's notifications, or the rest of an answer whose connection broke) and
/// DELETE (the end of a session).
class McpHandler final : public api::Handler {
public:
    /// Both must outlive the handler.
    McpHandler(McpContext& context, McpServer& server) : context_(context), server_(server) {}

    api::Response handle(api::Request& request) override;

private:
    struct Session {
        std::string id;
        std::string version;
        Json client_capabilities;
        WallTime expiry;
    };

    api::Response post(api::Request& request);
    /// Handles a POST that holds a place of the tenant's share.
    api::Response posted(api::Request& request, const controller::Principal& who, Accepts accepts);
    api::Response listen(api::Request& request);
    api::Response endSession(api::Request& request);
    api::Response legacy(api::Request& request, const controller::Principal& who,
                         const Classified& classified, Accepts accepts);
    api::Response initialize(const controller::Principal& who, const Message& message,
                             Accepts accepts);
    api::Response modern(api::Request& request, const controller::Principal& who,
                         const Classified& classified, Accepts accepts);
    api::Response subscriptions(api::Request& request, const Caller& caller,
                                const Message& message);
    /// Returns the session that the request names; if none, `refusal` is the answer.
    std::optional<Session> sessionOf(const api::Request& request, const controller::Principal& who,
                                     const Json& id, api::Response& refusal) const;
    /// Adds a URI to a listener's interest if streams can report its changes.
    void noteWanted(const CallContext& context, const std::string& uri,
                    ChangeNotifier::Listener& listener);

    McpContext& context_;
    McpServer& server_;
};

}  // namespace hearth::mcp
