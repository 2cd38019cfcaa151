#include "api/mcp/server/McpServer.h"

#include <algorithm>
#include <array>
#include <utility>

#include "api/mcp/server/McpSpan.h"
#include "controller/contract/RoleName.h"

namespace hearth::mcp {
namespace {

/// How long a modern client may keep a list. Streams report changes earlier.
constexpr std::int64_t kListTtlMs = 60'000;
constexpr std::int64_t kFixedTtlMs = 300'000;
/// The most values that MCP allows in one answer to completion/complete.
constexpr std::size_t kMaxProposals = 100;
/// The longest resource id from a caller in the audit log, in bytes.
constexpr std::size_t kAuditedName = 64;

bool isProgressToken(const Json& value) {
    if (value.is_string()) return value.get_ref<const std::string&>().size() <= kLongestId;
    return value.is_number_integer();
}

Json progressToken(const Message& message) {
    const Json* meta = member(message.params, "_meta");
    const Json* token = meta == nullptr ? nullptr : member(*meta, "progressToken");
    return token != nullptr && isProgressToken(*token) ? *token : Json();
}

[[noreturn]] void refuseParams(const std::string& what) {
    throw RpcFailure({rpc::kInvalidParams, what, {}});
}

std::string required(const Json& params, const std::string& name) {
    const std::optional<std::string> text = stringMember(params, name);
    if (!text) refuseParams(name + " must be a string");
    return *text;
}

/// Returns the URI of a subscription; its length is limited, because it is kept.
std::string uriOf(const Json& params) {
    std::string uri = required(params, "uri");
    if (uri.size() > kLongestUri) {
        refuseParams("uri is longer than " + std::to_string(kLongestUri) + " bytes");
    }
    return uri;
}

/// Refuses every cursor: lists are sent whole, so the server gives out none.
void refuseCursor(const Json& params) {
    if (member(params, "cursor") != nullptr) refuseParams("unknown cursor");
}

}  // namespace

/// One line of the table of methods, without tools/call, which may outlive its request.
struct McpServer::Method {
    const char* name;
    bool legacy;
    bool modern;
    std::optional<std::int64_t> ttl_ms;  ///< how long a modern answer may be kept; none: not at all
    Json (McpServer::*run)(const Caller&, const Message&);
};

const McpServer::Method* McpServer::find(std::string_view name) {
    static const std::array<Method, 12> methods = {{
        {"server/discover", false, true, kFixedTtlMs, &McpServer::discover},
        {"ping", true, false, {}, &McpServer::empty},
        {"logging/setLevel", true, false, {}, &McpServer::empty},
        {"resources/subscribe", true, false, {}, &McpServer::subscribe},
        {"resources/unsubscribe", true, false, {}, &McpServer::unsubscribe},
        {"tools/list", true, true, kListTtlMs, &McpServer::listTools},
        {"prompts/list", true, true, kFixedTtlMs, &McpServer::listPrompts},
        {"prompts/get", true, true, {}, &McpServer::getPrompt},
        {"resources/list", true, true, 0, &McpServer::listResources},
        {"resources/templates/list", true, true, kFixedTtlMs, &McpServer::listTemplates},
        {"resources/read", true, true, 0, &McpServer::readResource},
        {"completion/complete", true, true, {}, &McpServer::complete},
    }};
    const auto found = std::find_if(methods.begin(), methods.end(),
                                    [&](const Method& one) { return name == one.name; });
    return found == methods.end() ? nullptr : &*found;
}

McpServer::McpServer(const controller::Services& services, ClaimWaiters& waiting, Catalog catalog)
    : services_(services), waiting_(waiting), catalog_(std::move(catalog)) {}

Json McpServer::capabilities() const {
    Json out = {{"tools", {{"listChanged", catalog_.tools_change}}}, {"logging", Json::object()}};
    if (catalog_.prompts) {
        out["prompts"] = {{"listChanged", catalog_.prompts_change}};
        out["completions"] = Json::object();
    }
    if (catalog_.resources) {
        out["resources"] = {{"subscribe", true}, {"listChanged", true}};
        out["completions"] = Json::object();
    }
    return out;
}

Json McpServer::initialize(const Message& message, std::string& version) {
    const std::optional<std::string> requested = stringMember(message.params, "protocolVersion");
    if (!requested) {
        services_.metrics.mcp("initialize", "", "error");
        return errorMessage(message.id, {rpc::kInvalidParams, "protocolVersion is missing", {}});
    }
    version = negotiate(*requested);
    services_.metrics.mcp("initialize", "", "ok");
    return resultMessage(message.id, {{"protocolVersion", version},
                                      {"capabilities", capabilities()},
                                      {"serverInfo", catalog_.server_info},
                                      {"instructions", catalog_.instructions}});
}

void McpServer::seal(Json& result) const {
    if (!result.contains("resultType")) result["resultType"] = "complete";
    result["_meta"][envelope::kServer] = catalog_.server_info;
}

Json McpServer::answer(const Caller& caller, const Json& id, Json result) const {
    if (caller.context.modern) seal(result);
    return resultMessage(id, std::move(result));
}

void McpServer::count(const Caller& caller, const Json& id, const CallEnd& end) const {
    services_.metrics.mcp(end.method, end.tool, end.outcome);
    if (!services_.tracer.records(caller.context.who.trace)) return;
    services_.tracer.end(callSpan(caller, id, end, services_.clock.now()));
}

McpServer::Reply McpServer::handle(const Caller& caller, const Message& message) {
    switch (message.kind) {
        case MessageKind::Response:
            return std::monostate{};  // the transport knows which call waits for it
        case MessageKind::Invalid:
            return errorMessage(message.id, {rpc::kInvalidRequest, message.problem, {}});
        case MessageKind::Notification:
            if (message.method == "notifications/cancelled") {
                cancel(caller, message);
            }
            return std::monostate{};
        case MessageKind::Request:
            break;
    }
    return answerTo(withSpan(caller, message, services_.tracer), message);
}

McpServer::Reply McpServer::answerTo(const Caller& caller, const Message& message) {
    if (message.method == "tools/call") return callTool(caller, message);
    const Method* method = find(message.method);
    if (method == nullptr || !(caller.context.modern ? method->modern : method->legacy)) {
        count(caller, message.id, {"other", "", "error", rpc::kMethodNotFound});
        if (message.method == "initialize" && !caller.context.modern) {
            return errorMessage(message.id,
                                {rpc::kInvalidRequest, "initialize must come alone", {}});
        }
        return errorMessage(message.id,
                            {rpc::kMethodNotFound, "Method not found: " + message.method, {}});
    }
    try {
        Json result = (this->*method->run)(caller, message);
        if (caller.context.modern && method->ttl_ms) {
            result["ttlMs"] = *method->ttl_ms;
            result["cacheScope"] = "private";
        }
        count(caller, message.id, {message.method, "", "ok", {}});
        return answer(caller, message.id, std::move(result));
    } catch (const RpcFailure& failure) {
        count(caller, message.id, {message.method, "", "error", failure.error().code});
        return errorMessage(message.id, failure.error());
    } catch (const Error& error) {
        count(caller, message.id, {message.method, "", "error", rpc::kInternal});
        return errorMessage(message.id, {rpc::kInternal, error.what(), {}});
    }
}

void McpServer::cancel(const Caller& caller, const Message& message) {
    const char* outcome = "ok";
    try {
        if (const Json* id = member(message.params, "requestId")) {
            calls_.cancel(caller.calls_scope, *id);
        }
    } catch (const Error&) {
        outcome = "error";  // its sandbox has gone; a notification gets no answer
    }
    services_.metrics.mcp(message.method, "", outcome);
}

Json McpServer::discover(const Caller&, const Message&) {
    return {{"supportedVersions", kModernVersions},
            {"capabilities", capabilities()},
            {"instructions", catalog_.instructions}};
}

Json McpServer::empty(const Caller&, const Message& message) {
    if (message.method == "logging/setLevel" &&
        !logSeverity(stringMember(message.params, "level").value_or(""))) {
        refuseParams(
            "level must be debug, info, notice, warning, error, critical, alert or "
            "emergency");
    }
    return Json::object();
}

const Resources& McpServer::resources() const {
    if (!catalog_.resources) {
        throw RpcFailure({rpc::kMethodNotFound, "this endpoint has no resources", {}});
    }
    return *catalog_.resources;
}

Json McpServer::subscribe(const Caller& caller, const Message& message) {
    const std::string uri = uriOf(message.params);
    if (!willTell(caller.context, uri)) throw Resources::notFound(caller.context, uri);
    return Json::object();
}

Json McpServer::unsubscribe(const Caller&, const Message& message) {
    resources();
    uriOf(message.params);
    return Json::object();
}

bool McpServer::willTell(const CallContext& context, const std::string& uri) const {
    if (uri.size() > kLongestUri) return false;
    try {
        return resources().watchable(context, uri);
    } catch (const Error&) {  // no resource that the caller can see
        return false;
    }
}

Json McpServer::listTools(const Caller& caller, const Message& message) {
    refuseCursor(message.params);
    return catalog_.tools.list(caller.context.who);
}

Json McpServer::listPrompts(const Caller&, const Message& message) {
    refuseCursor(message.params);
    if (!catalog_.prompts) {
        throw RpcFailure({rpc::kMethodNotFound, "this endpoint has no prompts", {}});
    }
    return catalog_.prompts->list();
}

Json McpServer::getPrompt(const Caller& caller, const Message& message) {
    if (!catalog_.prompts) {
        throw RpcFailure({rpc::kMethodNotFound, "this endpoint has no prompts", {}});
    }
    PromptOutcome outcome =
        catalog_.prompts->get(contextOf(caller, message.params), message.params);
    if (const auto* input = std::get_if<InputRequired>(&outcome)) {
        return inputRequiredResult(*input);
    }
    return std::get<Json>(std::move(outcome));
}

Json McpServer::listResources(const Caller& caller, const Message& message) {
    refuseCursor(message.params);
    return resources().list(caller.context);
}

Json McpServer::listTemplates(const Caller&, const Message& message) {
    refuseCursor(message.params);
    return resources().templates();
}

Json McpServer::readResource(const Caller& caller, const Message& message) {
    return resources().read(caller.context, required(message.params, "uri"));
}

Json McpServer::complete(const Caller& caller, const Message& message) {
    const Json* ref = member(message.params, "ref");
    const Json* argument = member(message.params, "argument");
    if (ref == nullptr || argument == nullptr) refuseParams("ref and argument are required");
    const std::string type = required(*ref, "type");
    Typed typed{required(*argument, "name"), required(*argument, "value")};
    if (const Json* context = member(message.params, "context")) {
        const Json* known = member(*context, "arguments");
        const bool absent = context->is_object() && (known == nullptr || known->is_null());
        if (!absent && (known == nullptr || !known->is_object())) {
            refuseParams("context.arguments must be an object");
        }
        static const Json none = Json::object();
        for (const auto& [name, value] : (absent ? none : *known).items()) {
            if (value.is_string()) typed.known[name] = value.get<std::string>();
        }
    }
    std::vector<std::string> all;
    if (type == "ref/prompt" && catalog_.prompts) {
        all = catalog_.prompts->complete(required(*ref, "name"), typed.variable);
    } else if (type == "ref/resource" && catalog_.resources) {
        all = catalog_.resources->complete(caller.context, required(*ref, "uri"), typed);
    } else {
        refuseParams("unknown reference type " + type);
    }
    Json values = Json::array();
    std::size_t total = 0;
    for (const std::string& value : all) {
        if (!value.starts_with(typed.value)) continue;
        if (++total <= kMaxProposals) values.push_back(value);
    }
    const bool more = total > values.size();
    return {{"completion", {{"values", std::move(values)}, {"total", total}, {"hasMore", more}}}};
}

McpServer::Reply McpServer::callTool(const Caller& caller, const Message& message) {
    const std::string name = stringMember(message.params, "name").value_or("");
    const Tool* tool = catalog_.tools.find(name);
    if (tool == nullptr) {
        count(caller, message.id, {message.method, "unknown", "error", rpc::kInvalidParams});
        return errorMessage(message.id,
                            {rpc::kInvalidParams,
                             "Unknown tool: " + name + ". The tools are " + catalog_.tools.names(),
                             {}});
    }
    const Json* given = member(message.params, "arguments");
    const Json arguments = given == nullptr ? Json::object() : *given;
    const std::shared_ptr<Call> call = calls_.begin(caller.calls_scope, message.id);
    std::optional<PendingCall> pending;
    std::optional<LiveCall> live;
    Json done = toolAnswer(caller, tool->name, message.id, [&]() -> Json {
        ToolOutcome outcome =
            catalog_.tools.call(*tool, contextOf(caller, message.params), arguments);
        if (auto* claiming = std::get_if<ClaimingCall>(&outcome)) {
            outcome =
                waiting_.call(caller.context.who.tenant,
                              {audited(caller, *tool, arguments, std::move(claiming->claim))});
        } else {
            audit(caller, *tool, arguments, std::get_if<ToolResult>(&outcome));
        }
        if (auto* waiting = std::get_if<PendingCall>(&outcome)) {
            pending = std::move(*waiting);
            return {};
        }
        if (auto* talking = std::get_if<LiveCall>(&outcome)) {
            live = std::move(*talking);
            return {};
        }
        if (const auto* input = std::get_if<InputRequired>(&outcome)) {
            count(caller, message.id, {message.method, tool->name, "input_required", {}});
            return answer(caller, message.id, inputRequiredResult(*input));
        }
        return resultOf(caller, tool->name, message.id, std::get<ToolResult>(outcome));
    });
    if (live) {
        LiveReply reply;
        reply.id = message.id;
        reply.progress_token = progressToken(message);
        reply.log_severity = caller.log_severity;
        reply.log_wanted = caller.log_severity.has_value() || !caller.context.modern;
        reply.may_ask = !caller.context.modern;
        reply.call = call;
        reply.answer = [this, caller, tool, id = message.id,
                        work = std::move(live->work)](Conversation& conversation) {
            return toolAnswer(caller, tool->name, id,
                              [&] { return resultOf(caller, tool->name, id, work(conversation)); });
        };
        return reply;
    }
    if (!pending) return done;
    PendingToolCall slow;
    slow.id = message.id;
    slow.progress_token = progressToken(message);
    slow.call = call;
    slow.tenant = caller.context.who.tenant;
    slow.started_at = caller.context.started_at;
    slow.log_severity = caller.log_severity;
    slow.answer = [this, caller, tool, id = message.id, finish = pending->finish] {
        return toolAnswer(caller, tool->name, id,
                          [&] { return resultOf(caller, tool->name, id, finish()); });
    };
    slow.refusal = [this, caller, tool, id = message.id](const Error& error) {
        return refusal(caller, tool->name, id, error);
    };
    call->onCancel(pending->cancel);
    slow.pending = std::move(*pending);
    return slow;
}

Task<ClaimOutcome> McpServer::audited(Caller caller, const Tool& tool, Json arguments,
                                      Task<ClaimOutcome> claim) const {
    ClaimOutcome outcome = co_await claim;
    audit(caller, tool, arguments, std::get_if<ToolResult>(&outcome));
    co_return outcome;
}

void McpServer::audit(const Caller& caller, const Tool& tool, const Json& arguments,
                      const ToolResult* result) const {
    if (services_.audit == nullptr || !services_.audit->enabled()) return;
    const ErrorCode* failure = result != nullptr && result->failure ? &*result->failure : nullptr;
    const bool denied = failure != nullptr &&
                        (*failure == ErrorCode::Forbidden || *failure == ErrorCode::RateLimited ||
                         *failure == ErrorCode::QuotaExceeded);
    const Json* reads = member(tool.annotations, "readOnlyHint");
    if (!denied && reads != nullptr && *reads == true) return;
    metrics::AuditEntry entry;
    entry.surface = "mcp";
    entry.operation = "tools/call " + tool.name;
    for (const char* name : {"workspace_id", "run_id", "container_id", "sandbox_id"}) {
        if (const auto id = stringMember(arguments, name)) {
            entry.resource = toUtf8(id->substr(0, kAuditedName));
            break;
        }
    }
    entry.tenant = caller.context.who.tenant;
    entry.role = controller::kRoles.of(caller.context.who.role);
    entry.token = caller.context.who.token_id;
    entry.peer = caller.peer;
    entry.status = failure != nullptr ? errorCodeStatus(*failure) : 200;
    if (failure != nullptr) entry.error_code = errorCodeName(*failure);
    entry.request_id = caller.request_id;
    entry.trace_id = caller.trace_id;
    services_.audit->record(entry);
}

Json McpServer::resultOf(const Caller& caller, const std::string& tool, const Json& id,
                         const ToolResult& result) const {
    count(caller, id, {"tools/call", tool, result.is_error ? "tool_error" : "ok", {}});
    return answer(caller, id, result.message());
}

Json McpServer::toolAnswer(const Caller& caller, const std::string& tool, const Json& id,
                           const std::function<Json()>& make) const {
    try {
        return make();
    } catch (const RpcFailure& failure) {
        count(caller, id, {"tools/call", tool, "error", failure.error().code});
        return errorMessage(id, failure.error());
    } catch (const Error& error) {
        return refusal(caller, tool, id, error);
    } catch (const std::exception& error) {
        services_.log.error(
            "mcp_tool_failed",
            {{"tool", tool}, {"request", caller.request_id}, {"error", error.what()}});
        count(caller, id, {"tools/call", tool, "error", rpc::kInternal});
        return errorMessage(id,
                            {rpc::kInternal,
                             "Internal error; the server's log has it under " + caller.request_id,
                             {}});
    }
}

Json McpServer::refusal(const Caller& caller, const std::string& tool, const Json& id,
                        const Error& error) const {
    return resultOf(caller, tool, id, errorResult(error));
}

std::optional<Json> McpServer::settle(PendingToolCall& slow, const Clock& clock,
                                      TimePoint deadline) {
    const PendingCall& pending = slow.pending;
    const TimePoint last = pending.until ? std::min(deadline, *pending.until) : deadline;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(last - clock.now());
    try {
        if (!pending.work->finished() && left.count() > 0) pending.work->wait(left);
    } catch (const Error& error) {
        return slow.refusal(error);
    }
    if (slow.call->cancelled()) return Json();
    if (!pending.ready(clock.now())) return std::nullopt;
    return slow.answer();
}

CallContext contextOf(const Caller& caller, const Json& params) {
    CallContext context = caller.context;
    if (!context.modern) return context;
    if (const Json* responses = member(params, "inputResponses")) {
        if (!responses->is_object()) refuseParams("inputResponses must be an object");
        context.input_responses = *responses;
    }
    if (const Json* state = member(params, "requestState")) {
        if (!state->is_string()) refuseParams("requestState must be a string");
        context.request_state = state->get<std::string>();
    }
    return context;
}

Json inputRequiredResult(const InputRequired& input) {
    Json out = {{"resultType", "input_required"}};
    if (!input.requests.empty()) out["inputRequests"] = input.requests;
    if (!input.state.empty()) out["requestState"] = input.state;
    return out;
}

}  // namespace hearth::mcp
