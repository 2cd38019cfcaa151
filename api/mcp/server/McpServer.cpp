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
constexpr std::chrono::seconds kTryAgain{5};

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

/// Returns the thing that a call's arguments name, for the audit log; empty if none.
std::string auditedResource(const Json& arguments) {
    for (const char* name : {"workspace_id", "run_id", "container_id", "sandbox_id"}) {
        if (const auto id = stringMember(arguments, name)) {
            return toUtf8(id->substr(0, kAuditedName));
        }
    }
    return {};
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

McpServer::McpServer(const controller::Services& services, TenantPlaces& waiting, Catalog catalog)
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

McpServer::Reply McpServer::handle(const Caller& caller, Message message) {
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
    const Caller spanned = withSpan(caller, message, services_.tracer);
    if (message.method == "tools/call") return callOf(spanned, std::move(message));
    return answerTo(spanned, message);
}

Json McpServer::answerTo(const Caller& caller, const Message& message) {
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
    if (const Json* id = member(message.params, "requestId"))
        calls_.cancel(caller.calls_scope, *id);
    services_.metrics.mcp(message.method, "", "ok");
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

ToolCall McpServer::callOf(const Caller& caller, Message message) {
    const std::shared_ptr<Call> call = calls_.begin(caller.calls_scope, message.id);
    Json token = progressToken(message);
    return {.call = call,
            .progress_token = std::move(token),
            .tenant = caller.context.who.tenant,
            .started_at = caller.context.started_at,
            .log_severity = caller.log_severity,
            .modern = caller.context.modern,
            .answer = callTool(caller, std::move(message), call)};
}

Task<Json> McpServer::callTool(Caller caller, Message message, std::shared_ptr<Call> call) {
    const std::string name = stringMember(message.params, "name").value_or("");
    const Tool* tool = catalog_.tools.find(name);
    if (tool == nullptr) co_return unknownTool(caller, message, name);
    const auto end = [&](const char* outcome, std::optional<int> code) {
        count(caller, message.id, {message.method, tool->name, outcome, code});
    };
    try {
        CallContext context = contextOf(caller, message.params);
        context.call = call;
        Json& arguments = message.params["arguments"];
        if (arguments.is_null()) arguments = Json::object();
        std::string resource = auditedResource(arguments);
        ToolOutcome outcome = catalog_.tools.call(*tool, context, arguments);
        message.params = {};  // they may be long, and the work has what it needs
        if (auto* work = std::get_if<Task<ToolResult>>(&outcome)) {
            Task<ToolResult> going =
                carried(caller, *tool, std::move(resource), call, std::move(*work));
            outcome = co_await going;
        } else {
            audit(caller, *tool, resource, std::get_if<ToolResult>(&outcome));
        }
        if (const auto* input = std::get_if<InputRequired>(&outcome)) {
            end("input_required", {});
            co_return answer(caller, message.id, inputRequiredResult(*input));
        }
        const ToolResult& result = std::get<ToolResult>(outcome);
        if (result.take_back) call->made(result.take_back);
        co_return resultOf(caller, tool->name, message.id, result);
    } catch (const RpcFailure& failure) {
        end("error", failure.error().code);
        co_return errorMessage(message.id, failure.error());
    } catch (const Error& error) {
        co_return resultOf(caller, tool->name, message.id, errorResult(error));
    } catch (const std::exception& error) {
        end("error", rpc::kInternal);
        co_return brokenTool(caller, message.id, tool->name, error);
    }
}

Json McpServer::unknownTool(const Caller& caller, const Message& message,
                            const std::string& name) const {
    count(caller, message.id, {message.method, "unknown", "error", rpc::kInvalidParams});
    return errorMessage(message.id,
                        {rpc::kInvalidParams,
                         "Unknown tool: " + name + ". The tools are " + catalog_.tools.names(),
                         {}});
}

Json McpServer::brokenTool(const Caller& caller, const Json& id, const std::string& tool,
                           const std::exception& error) const {
    services_.log.error("mcp_tool_failed",
                        {{"tool", tool}, {"request", caller.request_id}, {"error", error.what()}});
    return errorMessage(
        id,
        {rpc::kInternal, "Internal error; the server's log has it under " + caller.request_id, {}});
}

// NOLINTBEGIN(performance-unnecessary-value-param): the frame keeps them
Task<ToolResult> McpServer::carried(const Caller& caller, const Tool& tool, std::string resource,
                                    std::shared_ptr<Call> call, Task<ToolResult> work) {
    // NOLINTEND(performance-unnecessary-value-param)
    std::shared_ptr<void> place;  // while it has no execution
    bool begun = false;
    while (!work.ended()) {
        if (work.wait() && !work.wait()->over(services_.clock)) {
            if (call->stopping()) {
                throw Error(ErrorCode::Unavailable, "the server is shutting down")
                    .hint("try again after its restart");
            }
            if (!begun && !place) place = placeFor(caller.context.who.tenant, *work.wait());
            auto next = std::make_shared<FirstOf>(
                std::vector<WaitablePtr>{work.wait(), call->serverStop()});
            co_await next;
            continue;
        }
        work.run();
        if (begun || !call->execution()) continue;
        begun = true;
        place.reset();
        audit(caller, tool, resource, nullptr);
    }
    ToolResult result = work.result();
    if (!begun) audit(caller, tool, resource, &result);
    co_return result;
}

std::shared_ptr<void> McpServer::placeFor(const std::string& tenant, const Waitable& wait) {
    std::shared_ptr<void> place = waiting_.take(tenant);
    if (place) return place;
    if (waiting_.hasItsShare(tenant)) {
        throw Error(ErrorCode::RateLimited,
                    "tenant " + tenant + " has " + std::to_string(waiting_.held(tenant)) +
                        " calls waiting for a sandbox, the most that a tenant may have")
            .hint("wait until some of them are answered")
            .retryAfter(kTryAgain);
    }
    throw Error(ErrorCode::Unavailable,
                "too many calls wait already; this one would wait for " + describe(wait))
        .hint("try again in a moment")
        .retryAfter(kTryAgain);
}

void McpServer::audit(const Caller& caller, const Tool& tool, const std::string& resource,
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
    entry.resource = resource;
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

std::string describe(const Waitable& wait) {
    const auto progress = wait.progress();
    if (!progress) return "its turn";
    std::string text = progress->what_for;
    if (progress->place == 0) return text;
    text += " (place " + std::to_string(progress->place) + " of " + std::to_string(progress->of) +
            " in line";
    if (progress->estimate) {
        text += ", about " + std::to_string(progress->estimate->count()) + " s to go";
    }
    return text + ")";
}

}  // namespace hearth::mcp
