#include "api/mcp/http/Admission.h"

#include <memory>
#include <string>
#include <utility>

#include "api/auth/Audited.h"
#include "api/http/RequestFacts.h"
#include "api/mcp/http/ReplyAssembler.h"
#include "base/Units.h"

namespace hearth::mcp {

controller::Principal admitted(const McpContext& context, api::Request& request, Counts counts) {
    metrics::AuditEntry draft;
    draft.surface = "mcp";
    draft.operation = request.method() == "POST" ? "message" : "stream";
    draft.route = "/mcp";
    const auto entry = auth::audited(request, context.services.audit, std::move(draft), true);
    controller::Principal who = context.authenticator.authenticate(request);
    auth::sayWho(entry, who);
    if (counts == Counts::Call) auth::require(context.limits, request, who.tenant);
    return who;
}

void countFurther(const McpContext& context, api::Request& request,
                  const controller::Principal& who, std::size_t messages) {
    for (std::size_t i = 1; i < messages; ++i) auth::require(context.limits, request, who.tenant);
}

std::variant<Json, api::Response> postedJson(api::Request& request, std::size_t max_bytes) {
    if (api::mediaTypeOf(request) != "application/json") {
        return mcpRefusal(415, {}, rpc::kTransport, "Content-Type must be application/json");
    }
    JsonLimits limits;
    limits.bytes = max_bytes;
    try {
        return parseJson(request.readBody(max_bytes), limits);
    } catch (const Error& error) {
        if (error.code() == ErrorCode::PayloadTooLarge) {
            return mcpRefusal(
                413, {}, rpc::kTransport,
                "The message is larger than " + formatSize(static_cast<double>(max_bytes)));
        }
        if (error.code() != ErrorCode::InvalidArgument) throw;
        return mcpRefusal(400, {}, rpc::kParseError, std::string("Parse error: ") + error.what());
    }
}

namespace {

/// Applies a session's accepted message (log level, subscription) to its streams. Returns the error
/// that is the answer instead if there is no place for the subscription.
std::optional<Json> noteSession(McpContext& context, const Caller& caller, const Message& message) {
    const std::string& session = caller.context.session;
    if (message.method == "logging/setLevel") {
        context.log_levels.set(caller.context.who.tenant, session,
                               stringMember(message.params, "level").value_or(""));
    }
    const std::string uri = stringMember(message.params, "uri").value_or("");
    if (message.method == "resources/unsubscribe") context.notifier.unsubscribe(session, uri);
    if (message.method != "resources/subscribe" ||
        context.notifier.subscribe(caller.context.who, session, uri)) {
        return std::nullopt;
    }
    return errorMessage(message.id, {rpc::kInvalidParams,
                                     "too many subscriptions: of a session or a workspace",
                                     {{"uri", uri}}});
}

}  // namespace

McpServer::Reply handled(McpContext& context, McpServer& server, const Caller& caller,
                         const Message& message) {
    if (message.kind != MessageKind::Request || message.method != "tools/call") {
        McpServer::Reply reply = server.handle(caller, message);
        if (caller.context.modern || message.kind != MessageKind::Request) return reply;
        const auto* answer = std::get_if<Json>(&reply);
        if (answer == nullptr || !answer->contains("result")) return reply;
        if (auto refusal = noteSession(context, caller, message)) return std::move(*refusal);
        return reply;
    }
    std::shared_ptr<void> place;
    try {
        place = context.call_places.take(caller.context.who.tenant);
    } catch (const Error& error) {
        return errorMessage(message.id, {rpc::kInternal, error.what(), {}});
    }
    McpServer::Reply reply = server.handle(caller, message);
    const auto tell = [&notifier = context.notifier, who = caller.context.who,
                       session = caller.context.modern ? "" : caller.context.session] {
        notifier.tellCaller(who, session);
    };
    auto& call = std::get<ToolCall>(reply);
    call.place = std::move(place);
    call.told = tell;
    call.goOn(context.services.clock);
    if (!call.answer.ended()) return reply;
    Json said = call.answer.result();
    call.tell();
    return said;
}

void followCall(McpContext& context, ToolCall call, const std::shared_ptr<MessageSink>& sink,
                const std::stop_token& stop, const std::string& session) {
    if (call.call->wantsTalk()) {  // not for others: the talk keeps the stream open
        call.call->openTalk(
            std::make_shared<Talk>(call, session, sink, context.questions, context.services.clock));
    }
    const auto hang_up =
        call.modern ? ToolCalls::HangUp::Cancels : ToolCalls::HangUp::LeavesRunning;
    context.tool_calls.follow(std::move(call), sink, stop, hang_up);
}

Caller callerOf(const api::Request& request, const controller::Principal& who) {
    Caller caller;
    caller.context.who = who;
    caller.context.started_at = request.startedAt();
    caller.context.origin = api::originOf(request);
    caller.request_id = request.id();
    caller.trace_id = request.traceId();
    caller.peer = request.peer();
    return caller;
}

}  // namespace hearth::mcp
