#include "api/mcp/seeds/NamedLocks.h"
#include "api/mcp/seeds/SeedToolkit.h"
#include "base/Digest.h"

// S2: one sandbox that no call names. It belongs to the principal and the session (without
// sessions, to the bridge that carries the call), never to the server. A label of the workspace
// names the owner. So the sandbox is found again after a restart, and this code keeps no state that
// could grow or be lost.

namespace hearth::mcp::seeds {
namespace {

using controller::ExecutionStatus;
using controller::ExecutionView;
using controller::Services;
using controller::WorkspaceView;

constexpr const char* kCurrent = "hearth.dev/current-of";
constexpr const char* kImage = "hearth.dev/current-image";
constexpr const char* kAlpine = "alpine:latest";

/// The session id is its client's secret, so a label shows only its digest.
std::string keyOf(const CallContext& call) {
    const std::string who = std::to_string(call.who.token_id.size()) + ":" + call.who.token_id;
    return toHex(sha256(who + call.session)).substr(0, 32);
}

std::optional<WorkspaceView> current(const Services& services, const CallContext& call) {
    controller::ListQuery query;
    query.labels = {{kCurrent, keyOf(call)}};
    for (const WorkspaceView& view : services.workspaces.list(call.who, query).items) {
        if (view.tenant == call.who.tenant && controller::isOpen(view.phase)) return view;
    }
    return std::nullopt;
}

WorkspaceView needCurrent(const Services& services, const CallContext& call) {
    if (auto view = current(services, call)) return *view;
    throw Error(ErrorCode::Conflict, "there is no sandbox: call initialize_sandbox first");
}

std::string labelOf(const WorkspaceView& view, const char* label) {
    const auto found = view.labels.find(label);
    return found == view.labels.end() ? "" : found->second;
}

Task<ToolResult> initialize(const Services& services, std::shared_ptr<NamedLocks> turns,
                            CallContext call, Arguments arguments) {
    Wish wish;
    wish.image = arguments.textOr("image", kAlpine);
    wish.default_image = kAlpine;
    wish.packages = false;
    wish.labels = {{kCurrent, keyOf(call)}, {kImage, *wish.image}};
    Task<std::shared_ptr<void>> taking =
        turns->take(call.who.tenant + "\n" + keyOf(call), services.clock.now() + call.patience);
    const std::shared_ptr<void> turn = co_await taking;
    if (const auto view = current(services, call)) {
        if (labelOf(*view, kImage) != *wish.image) {
            throw Error(ErrorCode::Conflict,
                        "your sandbox has image " + labelOf(*view, kImage) + ", not " + *wish.image)
                .hint("call stop_sandbox first");
        }
        co_return valueResult({{"status", "success"}, {"container_id", view->id}});
    }
    Task<WorkspaceView> opening = openWorkspace(services, call, std::move(wish));
    const WorkspaceView view = co_await opening;
    co_return tellingOf(view, services, call,
                        valueResult({{"status", "success"}, {"container_id", view.id}}));
}

ToolOutcome execute(const Services& services, const CallContext& call, const Arguments& arguments) {
    const WorkspaceView view = needCurrent(services, call);
    controller::ExecutionRequest request;
    request.language = arguments.textOr("language", "python");
    setCode(services, call, view.id, *arguments.text("code"), request);
    request.timeout = kLongestRun;
    request.started_at = call.started_at;
    const auto execution = services.executions.start(call.who, view.id, request);
    return whenEnded(services, call, execution, [execution](const ExecutionView& run) {
        const std::string output = toUtf8(mergedOutput(*execution, UINT64_MAX));
        if (run.status == ExecutionStatus::Ok) {
            return valueResult(
                {{"status", "success"}, {"exit_code", exitCode(run)}, {"output", output}});
        }
        const auto why = brokenOff(run);
        return valueResult(
            {{"status", "error"},
             {"error_type",
              run.status == ExecutionStatus::Timeout ? "TimeoutError" : "ExecutionError"},
             {"message", why ? *why : "it ended with exit code " + std::to_string(exitCode(run))},
             {"output", output},
             {"exit_code", exitCode(run)}});
    });
}

ToolOutcome stop(const Services& services, const CallContext& call) {
    const WorkspaceView view = needCurrent(services, call);
    services.workspaces.close(call.who, view.id);
    return valueResult({{"status", "success"}, {"message", "the sandbox is stopped and removed"}});
}

Json s2Failure(const Error& error) {
    // The only error type that the seed names; other errors use Hearth's codes.
    const bool state = error.code() == ErrorCode::Conflict;
    return {{"status", "error"},
            {"error_type", state ? "StateError" : std::string(errorCodeName(error.code()))},
            {"message", inWords(error)}};
}

}  // namespace

std::vector<SeedTool> s2Tools(const Services& services) {
    const auto turns = std::make_shared<NamedLocks>();
    std::vector<SeedTool> tools;
    tools.push_back(
        {{"initialize_sandbox", "Initialize the sandbox",
          "Makes your sandbox, or finds it again. Without an image, and for the default one, it "
          "has Python.",
          objectSchema({{"image", withDefault(stringParam("The image to use."), kAlpine)}}),
          toolHints(false, false, true),
          [&services, turns](const CallContext& call, const Arguments& arguments) {
              return initialize(services, turns, call, arguments);
          }},
         s2Failure});
    tools.push_back(
        {{"execute_code", "Execute code",
          "Runs code in your sandbox; gives what it wrote, stdout and stderr together.",
          objectSchema(
              {{"code", stringParam("The program.", 0)},
               {"language", withDefault(stringParam("A language of the image."), "python")}},
              {"code"}),
          toolHints(false, false, false),
          [&services](const CallContext& call, const Arguments& arguments) {
              return execute(services, call, arguments);
          }},
         s2Failure});
    tools.push_back(
        {{"stop_sandbox", "Stop the sandbox", "Ends your sandbox with its files.",
          objectSchema(Json::object()), toolHints(false, true, true),
          [&services](const CallContext& call, const Arguments&) { return stop(services, call); }},
         s2Failure});
    return tools;
}

}  // namespace hearth::mcp::seeds
