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

/// Where a message came from.
struct Caller {
    CallContext context;     ///< without what a single request adds
    std::string version;     ///< negotiated, or named by the request
    std::string request_id;  ///< of the HTTP request
    std::string trace_id;
    std::string parent_span{};  ///< that the request is a part of
    /// The HTTP request, where the client's `_meta` puts the call into another trace.
    std::optional<TraceContext> http_span{};
    std::string peer;         ///< address
    std::string calls_scope;  ///< what a request id is unique in; empty: nothing cancels by id
    /// The least level of log messages that the client wants; none: none of a modern client, all
    /// of a legacy one.
    std::optional<int> log_severity{};
};

/// The methods of every era, apart from any transport: messages in, answers or calls in work out.
/// Thread-safe.
class McpServer {
public:
    /// `services` outlive the server, which outlives the calls that wait in `waiting`.
    McpServer(const controller::Services& services, ClaimWaiters& waiting, Catalog catalog);

    /// Nothing for a notification or response; a message; or a call that is still running.
    using Reply = std::variant<std::monostate, Json, PendingToolCall, LiveReply>;
    Reply handle(const Caller& caller, const Message& message);
    /// The result of `initialize`, or the error that refuses it. Sets `version`.
    Json initialize(const Message& message, std::string& version);

    const Catalog& catalog() const { return catalog_; }
    /// Whether streams can tell the caller of changes of a URI.
    bool willTell(const CallContext& context, const std::string& uri) const;
    /// What a modern answer has in addition: resultType and the server's name.
    void seal(Json& result) const;

    /// Waits for what is left of a slow call up to `deadline`: its answer (null if cancelled), or
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

    /// The answer to a request, whose caller has a span of its own.
    Reply answerTo(const Caller& caller, const Message& message);
    void cancel(const Caller& caller, const Message& message);
    Reply callTool(const Caller& caller, const Message& message);
    /// Turns a tool's outcome into a message; closes metrics and logs internal errors.
    Json toolAnswer(const Caller& caller, const std::string& tool, const Json& id,
                    const std::function<Json()>& make) const;
    /// Counts how a request ended, and records its span.
    void count(const Caller& caller, const Json& id, const CallEnd& end) const;
    /// Tells the audit log of a call that may change something, or that was refused.
    void audit(const Caller& caller, const Tool& tool, const Json& arguments,
               const ToolOutcome& outcome) const;
    Json resultOf(const Caller& caller, const std::string& tool, const Json& id,
                  const ToolResult& result) const;
    /// The answer of a tool that failed, so that the model can act on it.
    Json refusal(const Caller& caller, const std::string& tool, const Json& id,
                 const Error& error) const;
    Json answer(const Caller& caller, const Json& id, Json result) const;
    Json capabilities() const;
    /// RpcFailure without any.
    const Resources& resources() const;

    const controller::Services& services_;
    ClaimWaiters& waiting_;
    const Catalog catalog_;
    CancellableCalls calls_;
};

/// The context of one request: what `params` adds to the caller's.
CallContext contextOf(const Caller& caller, const Json& params);
/// The result that asks the client for more.
Json inputRequiredResult(const InputRequired& input);

}  // namespace hearth::mcp
