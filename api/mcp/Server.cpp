#include "api/mcp/Server.h"

#include <algorithm>
#include <utility>

namespace hearth::mcp {
namespace {

constexpr const char* kInstructions =
    "Hearth runs code in isolated sandboxes that are kept warm, so opening one takes about a "
    "millisecond. For a single calculation call run with code or command and no workspace: it is "
    "a one shot and leaves nothing behind. To keep files between calls, call workspace_open once, "
    "pass its workspace_id to run, file_put and file_get, and call workspace_close at the end. "
    "Every run starts a fresh process: variables do not survive, files do. Pictures: save them to "
    "a file in the run, then file_get shows PNG and JPEG. For work longer than about 50 seconds "
    "pass background=true and ask run_status. An error says what to do next. pool_list shows "
    "languages and limits.\n\n"
    "Hearth 在隔离的沙箱中运行代码。只算一次：直接调用 run（给 code 或 command，不给 "
    "workspace_id），运行后沙箱即销毁。需要保留文件：先调用 workspace_open，之后在 run、file_put、"
    "file_get 中传入 workspace_id，用完调用 "
    "workspace_close。变量不会在两次运行之间保留，文件会保留。"
    "图片先保存为文件，再用 file_get 查看。耗时较长的任务请设 background=true，再用 run_status "
    "查询。";

bool isToken(const Json& value) {
    return value.is_string() || value.is_number_integer();
}

Json progressToken(const Message& message) {
    const Json* meta = member(message.params, "_meta");
    const Json* token = meta == nullptr ? nullptr : member(*meta, "progressToken");
    return token != nullptr && isToken(*token) ? *token : Json();
}

}  // namespace

Server::Server(const controller::Services& services)
    : services_(services), tools_(services, nativeTools(services)) {}

Json Server::initialize(const Message& message, std::string& version) {
    const std::optional<std::string> requested = stringMember(message.params, "protocolVersion");
    if (!requested) {
        services_.metrics.mcp("initialize", "", "error");
        return errorMessage(message.id, {rpc::kInvalidParams, "protocolVersion is missing", {}});
    }
    version = negotiate(*requested);
    services_.metrics.mcp("initialize", "", "ok");
    return resultMessage(
        message.id,
        {{"protocolVersion", version},
         {"capabilities", {{"tools", {{"listChanged", false}}}}},
         {"serverInfo", {{"name", "hearth"}, {"title", "Hearth"}, {"version", HEARTH_VERSION}}},
         {"instructions", kInstructions}});
}

Server::Reply Server::handle(const Caller& caller, const Message& message) {
    switch (message.kind) {
        case MessageKind::Response:
            return std::monostate{};  // we ask clients nothing, so this answers nothing
        case MessageKind::Invalid:
            return errorMessage(message.id, {rpc::kInvalidRequest, message.problem, {}});
        case MessageKind::Notification:
            if (message.method == "notifications/cancelled") {
                if (const Json* id = member(message.params, "requestId")) {
                    calls_.cancel(caller.session, *id);
                }
                services_.metrics.mcp(message.method, "", "ok");
            }
            return std::monostate{};
        case MessageKind::Request:
            break;
    }
    if (message.method == "tools/call") return callTool(caller, message);
    if (message.method == "ping" || message.method == "tools/list") {
        services_.metrics.mcp(message.method, "", "ok");
        return resultMessage(message.id,
                             message.method == "ping" ? Json::object() : tools_.list(caller.who));
    }
    services_.metrics.mcp("other", "", "error");
    if (message.method == "initialize") {
        return errorMessage(message.id, {rpc::kInvalidRequest, "initialize must come alone", {}});
    }
    return errorMessage(message.id,
                        {rpc::kMethodNotFound, "Method not found: " + message.method, {}});
}

Server::Reply Server::callTool(const Caller& caller, const Message& message) {
    const std::string name = stringMember(message.params, "name").value_or("");
    const Tool* tool = tools_.find(name);
    if (tool == nullptr) {
        services_.metrics.mcp(message.method, "unknown", "error");
        return errorMessage(message.id,
                            {rpc::kInvalidParams,
                             "Unknown tool: " + name + ". The tools are " + tools_.names(),
                             {}});
    }
    const Json* arguments = member(message.params, "arguments");
    const std::shared_ptr<Call> call = calls_.begin(caller.session, message.id);
    std::optional<PendingCall> pending;
    Json answer = toolAnswer(tool->name, caller.request_id, message.id, [&] {
        ToolOutcome outcome = tools_.call(*tool, {caller.who, caller.started_at, caller.origin},
                                          arguments == nullptr ? Json::object() : *arguments);
        if (auto* waiting = std::get_if<PendingCall>(&outcome)) {
            pending = std::move(*waiting);
            return ToolResult{};
        }
        return std::get<ToolResult>(std::move(outcome));
    });
    if (!pending) return answer;
    SlowCall slow;
    slow.id = message.id;
    slow.progress_token = progressToken(message);
    slow.call = call;
    slow.started_at = caller.started_at;
    slow.answer = [this, tool, id = message.id, request_id = caller.request_id,
                   finish = pending->finish] {
        return toolAnswer(tool->name, request_id, id, finish);
    };
    slow.refusal = [this, tool, id = message.id](const Error& error) {
        return refusal(tool->name, id, error);
    };
    call->onCancel(pending->cancel);
    slow.pending = std::move(*pending);
    return slow;
}

Json Server::toolAnswer(const std::string& tool, const std::string& request_id, const Json& id,
                        const std::function<ToolResult()>& make) const {
    try {
        const ToolResult result = make();
        if (!result.content.empty()) {
            services_.metrics.mcp("tools/call", tool, result.is_error ? "tool_error" : "ok");
        }
        return resultMessage(id, result.message());
    } catch (const Error& error) {
        return refusal(tool, id, error);
    } catch (const std::exception& error) {
        services_.log.error("mcp_tool_failed",
                            {{"tool", tool}, {"request", request_id}, {"error", error.what()}});
        services_.metrics.mcp("tools/call", tool, "error");
        return errorMessage(
            id,
            {rpc::kInternal, "Internal error; the server's log has it under " + request_id, {}});
    }
}

Json Server::refusal(const std::string& tool, const Json& id, const Error& error) const {
    services_.metrics.mcp("tools/call", tool, "tool_error");
    return resultMessage(id, errorResult(error).message());
}

std::optional<Json> Server::settle(SlowCall& slow, const Clock& clock, TimePoint deadline) {
    const PendingCall& pending = slow.pending;
    const TimePoint last = pending.until ? std::min(deadline, *pending.until) : deadline;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(last - clock.now());
    try {
        if (!pending.execution->finished() && left.count() > 0) pending.execution->wait(left);
    } catch (const Error& error) {
        return slow.refusal(error);
    }
    if (slow.call->cancelled()) return Json();
    if (!pending.ready(clock.now())) return std::nullopt;
    return slow.answer();
}

}  // namespace hearth::mcp
