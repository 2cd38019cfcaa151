#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "api/mcp/protocol/Call.h"
#include "api/mcp/protocol/Era.h"
#include "api/mcp/server/Catalog.h"
#include "api/mcp/server/ToolCall.h"
#include "base/tenants/TenantPlaces.h"

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
    /// `services` must outlive the server, and the server its calls. `waiting`: places of calls
    /// that wait for a sandbox.
    McpServer(const controller::Services& services, TenantPlaces& waiting, Catalog catalog);

    /// Nothing for a notification or response; a message; or a call, whose task has not begun.
    using Reply = std::variant<std::monostate, Json, ToolCall>;
    Reply handle(const Caller& caller, Message message);
    /// Returns the answer to `initialize`: a result, or the error that refuses it. Sets `version`.
    Json initialize(const Message& message, std::string& version);

    const Catalog& catalog() const { return catalog_; }
    /// True if streams can report changes of a URI to the caller.
    bool willTell(const CallContext& context, const std::string& uri) const;
    /// Adds the fields that only a modern answer has: resultType and the server's name.
    void seal(Json& result) const;

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
    Json answerTo(const Caller& caller, const Message& message);
    void cancel(const Caller& caller, const Message& message);
    ToolCall callOf(const Caller& caller, Message message);
    /// Returns the message that answers a tools/call; never throws.
    Task<Json> callTool(Caller caller, Message message, std::shared_ptr<Call> call);
    Json unknownTool(const Caller& caller, const Message& message, const std::string& name) const;
    /// Returns the answer to a call whose tool threw what no tool may throw, and logs it.
    Json brokenTool(const Caller& caller, const Json& id, const std::string& tool,
                    const std::exception& error) const;
    /// Returns the result of a tool's work, which ends when the server stops. The audit log has the
    /// call once it has begun an execution, or has ended.
    Task<ToolResult> carried(const Caller& caller, const Tool& tool, std::string resource,
                             std::shared_ptr<Call> call, Task<ToolResult> work);
    /// Takes a place for a call that waits. Throws Error(RateLimited, Unavailable) without one.
    std::shared_ptr<void> placeFor(const std::string& tenant, const Waitable& wait);
    /// Counts how a request ended, and records its span.
    void count(const Caller& caller, const Json& id, const CallEnd& end) const;
    /// Writes a call that may change something, or that was refused, to the audit log. `resource`:
    /// the thing that it names. `result`: null if it has none yet.
    void audit(const Caller& caller, const Tool& tool, const std::string& resource,
               const ToolResult* result) const;
    Json resultOf(const Caller& caller, const std::string& tool, const Json& id,
                  const ToolResult& result) const;
    Json answer(const Caller& caller, const Json& id, Json result) const;
    Json capabilities() const;
    /// Throws RpcFailure if the endpoint has no resources.
    const Resources& resources() const;

    const controller::Services& services_;
    TenantPlaces& waiting_;
    const Catalog catalog_;
    CancellableCalls calls_;
};

/// Returns the context of one request: the caller's, with the parts that `params` adds.
CallContext contextOf(const Caller& caller, const Json& params);
/// Returns the result that asks the client for more input.
Json inputRequiredResult(const InputRequired& input);

}  // namespace hearth::mcp
