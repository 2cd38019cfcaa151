#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "api/http/Handler.h"
#include "api/mcp/http/McpContext.h"
#include "api/mcp/server/McpServer.h"
#include "base/task/Task.h"

namespace hearth::mcp {

/// The forms of an answer that a client's Accept header allows.
enum class Accepts { Json, EventsOnly, Both, Neither };
/// Lenient: without the header the form is JSON, and "*/*" allows both.
Accepts acceptedForms(const api::Request& request);

/// Joins the replies to one POST into an HTTP answer: JSON if all are ready within the inline wait,
/// else an SSE stream that needs no worker. A client that accepts no stream gets its JSON when all
/// are ready.
class ReplyAssembler {
public:
    /// For a tenant's session with its version; a modern request has no session.
    ReplyAssembler(McpContext& context, std::string tenant, std::string session,
                   std::string version, bool modern)
        : context_(context),
          tenant_(std::move(tenant)),
          session_(std::move(session)),
          version_(std::move(version)),
          modern_(modern) {}

    void add(McpServer::Reply reply);
    void setBatch() { batch_ = true; }
    bool empty() const { return done_.empty() && calls_.empty(); }
    /// Called once.
    api::Response answer(api::Request& request, Accepts accepts) &&;

private:
    /// Keeps an answer. In a batch, an answer that makes the total too long becomes an error.
    void keep(Json done);
    /// Lets calls that end soon end in this worker.
    void waitInline();
    /// Takes the answers of calls that have ended.
    void collect();
    static Task<api::Response> whenAnswered(ReplyAssembler all, std::stop_token stop);
    api::Response stream(api::Request& request) &&;
    api::Response whole(Accepts accepts) const;
    /// Returns the HTTP status of a single message; a legacy answer is always 200.
    int status() const;

    McpContext& context_;
    std::string tenant_;
    std::string session_;
    std::string version_;
    bool modern_;
    bool batch_ = false;
    std::size_t batch_bytes_ = 0;
    std::vector<Json> done_;
    std::vector<ToolCall> calls_;  ///< the others
};

/// An empty answer, or one with a JSON body.
api::Response mcpAnswer(int status, std::string body = {});
/// An error of the protocol as an HTTP answer.
api::Response mcpRefusal(int status, const Json& id, int code, const std::string& message,
                         Json data = {});
/// The head of an event stream.
api::Response eventAnswer();

}  // namespace hearth::mcp
