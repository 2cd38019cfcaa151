#pragma once

#include <string>
#include <vector>

#include "api/http/Handler.h"
#include "api/mcp/http/McpContext.h"
#include "api/mcp/server/McpServer.h"

namespace hearth::mcp {

/// The forms of an answer that a client's Accept header allows.
enum class Accepts { Json, EventsOnly, Both, Neither };
/// Lenient: without the header JSON, and "*/*" is both.
Accepts acceptedForms(const api::Request& request);

/// Joins the replies to one POST into an HTTP answer: JSON if all are there within the inline wait,
/// else an SSE stream that needs no worker. A client that accepts no stream gets its JSON when all
/// are there.
class ReplyAssembler {
public:
    /// Of a tenant's session, with its version; or modern, with none.
    ReplyAssembler(McpContext& hub, std::string tenant, std::string session, std::string version,
                   bool modern)
        : hub_(hub),
          tenant_(std::move(tenant)),
          session_(std::move(session)),
          version_(std::move(version)),
          modern_(modern) {}

    void add(McpServer::Reply reply);
    void setBatch() { batch_ = true; }
    bool empty() const { return done_.empty() && slow_.empty() && live_.empty(); }
    /// Once.
    api::Response answer(api::Request& request, Accepts accepts) &&;

private:
    /// Of a batch, what would make its answers too long together becomes an error.
    void keep(Json done);
    void waitInline();
    api::Response later(api::Request& request) &&;
    api::Response stream(api::Request& request) &&;
    api::Response whole(Accepts accepts) const;
    /// Of the one message; a legacy answer is always 200.
    int status() const;

    McpContext& hub_;
    std::string tenant_;
    std::string session_;
    std::string version_;
    bool modern_;
    bool batch_ = false;
    std::size_t batch_bytes_ = 0;
    std::vector<Json> done_;
    std::vector<PendingToolCall> slow_;
    std::vector<LiveReply> live_;
};

/// An empty answer, or one with a JSON body.
api::Response mcpAnswer(int status, std::string body = {});
/// An error of the protocol as an HTTP answer.
api::Response mcpRefusal(int status, const Json& id, int code, const std::string& message,
                         Json data = {});
/// The head of an event stream.
api::Response eventAnswer();

}  // namespace hearth::mcp
