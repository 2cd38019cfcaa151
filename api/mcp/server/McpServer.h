#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "api/mcp/protocol/CancellableCalls.h"
#include "api/mcp/protocol/Era.h"
#include "api/mcp/server/Catalog.h"
#include "api/mcp/server/ClaimWaiters.h"
#include "api/mcp/server/PendingToolCall.h"

namespace hearth::mcp {

struct CallEnd;

/// The sender of a message, and the HTTP request that carried it.
struct Caller {
    CallContext context;     ///< without the parts that a single request adds
    std::string version;     ///< negotiated, or named by the request
    std::string request_id;  ///< the HTTP request's id
    std::string trace_id;
    std::string parent_span{};  ///< the span that contains the request
    /// The HTTP request's span, if the client's `_meta` puts the call into another trace.
    std::optional<TraceContext> http_span{};
    std::string peer;         ///< the client's address
    std::string calls_scope;  ///< a request id is unique in it; empty: nothing cancels by id
    /// The lowest log level that the client wants. If unset, a modern client gets no log messages
    /// and a legacy client gets all.
    std::optional<int> log_severity{};
};

/// The methods of every era, independent of any transport: takes messages, returns answers or calls
/// in progress. Thread-safe.
class McpServer {
public:
    /// `services` must outlive the server, and the server the calls that wait in `waiting`.
    McpServer(const controller::Services& services, ClaimWaiters& waiting, Catalog catalog);

    /// Nothing for a notification or response; a message; or a call that still runs.
    using Reply = std::variant<std::monostate, Json, PendingToolCall, LiveReply>;
    Reply handle(const Caller& caller, const Message& message);
    /// Returns the answer to `initialize`: a result, or the error that refuses it. Sets `version`.
    Json initialize(const Message& message, std::string& version);

    const Catalog& catalog() const { return catalog_; }
    /// True if streams can report changes of a URI to the caller.
    bool willTell(const CallContext& context, const std::string& uri) const;
    /// Adds the fields that only a modern answer has: resultType and the server's name.
    void seal(Json& result) const;

    /// Waits for a slow call until `deadline` at most. Returns its answer (null if cancelled), or
    /// nullopt if it still runs.
    static std::optional<Json> settle(PendingToolCall& slow, const Clock& clock,
                                      TimePoint deadline);

private:
    struct Method;
    static const Method* find(std::string_view name);

    Json discover(const Caller& caller, const Message& message);
    Json empty(const Caller& caller, const Message& message);
    Json subscribe(const Caller& caller, const Message& message);
    Json unsubscribe(const Caller& caller, const Message& message);
    Json listTools(const Caller& caller, const Message& message);
    Json listPrompts(const Caller& caller, const Message& message);
    Json getPrompt(const Caller& caller, const Message& message);
    Json listResources(const Caller& caller, const Message& message);
    Json listTemplates(const Caller& caller, const Message& message);
    Json readResource(const Caller& caller, const Message& message);
    Json complete(const Caller& caller, const Message& message);

    /// Returns the answer to a request; `caller` already has the request's own span.
    Reply answerTo(const Caller& caller, const Message& message);
    void cancel(const Caller& caller, const Message& message);
    Reply callTool(const Caller& caller, const Message& message);
    /// Returns the message that `make` makes. Counts its failures and logs internal errors.
    Json toolAnswer(const Caller& caller, const std::string& tool, const Json& id,
                    const std::function<Json()>& make) const;
    /// Counts how a request ended, and records its span.
    void count(const Caller& caller, const Json& id, const CallEnd& end) const;
    /// Writes a call that may change something, or that was refused, to the audit log. `result`:
    /// null if it has none yet.
    void audit(const Caller& caller, const Tool& tool, const Json& arguments,
               const ToolResult* result) const;
    /// The same claim, with its call in the audit log.
    Task<ClaimOutcome> audited(Caller caller, const Tool& tool, Json arguments,
                               Task<ClaimOutcome> claim) const;
    Json resultOf(const Caller& caller, const std::string& tool, const Json& id,
                  const ToolResult& result) const;
    /// Returns a tool's failure as the tool's result, so that the model can act on it.
    Json refusal(const Caller& caller, const std::string& tool, const Json& id,
                 const Error& error) const;
    Json answer(const Caller& caller, const Json& id, Json result) const;
    Json capabilities() const;
    /// Throws RpcFailure if the endpoint has no resources.
    const Resources& resources() const;

    const controller::Services& services_;
    ClaimWaiters& waiting_;
    const Catalog catalog_;
    CancellableCalls calls_;
};

/// Returns the context of one request: the caller's, with the parts that `params` adds.
CallContext contextOf(const Caller& caller, const Json& params);
/// Returns the result that asks the client for more input.
Json inputRequiredResult(const InputRequired& input);

}  // namespace hearth::mcp
