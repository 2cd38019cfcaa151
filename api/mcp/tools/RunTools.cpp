#include "api/mcp/tools/RunArtifacts.h"
#include "api/mcp/tools/RunEnd.h"
#include "api/mcp/tools/RunText.h"
#include "api/mcp/tools/Toolbox.h"

namespace hearth::mcp {
namespace {

using controller::Execution;
using controller::ExecutionRequest;
using controller::Services;

constexpr std::int64_t kMaxTimeout = 86'400;

[[noreturn]] void refuseArgument(const std::string& what) {
    throw Error(ErrorCode::InvalidArgument, what);
}

void checkCombination(const Arguments& arguments) {
    if (arguments.has("code") == arguments.has("command")) {
        refuseArgument("give exactly one of code and command");
    }
    for (const char* choice : {"pool", "image", "gpus"}) {
        if (arguments.has("workspace_id") && arguments.has(choice)) {
            refuseArgument(std::string(choice) + " is for a run without workspace_id");
        }
    }
    if (arguments.has("context")) {
        if (!arguments.has("workspace_id") || !arguments.has("code")) {
            refuseArgument("context goes with workspace_id and code");
        }
        for (const char* own : {"cwd", "env", "stdin"}) {
            if (arguments.has(own)) {
                refuseArgument(std::string(own) + " is not for a run in a context: set it by code");
            }
        }
    }
    if (arguments.has("workspace_id") && arguments.has("command") && arguments.has("language")) {
        refuseArgument("language goes with code, not with command");
    }
}

ExecutionRequest executionRequest(const Services& services, const CallContext& call,
                                  const Arguments& arguments) {
    ExecutionRequest request;
    request.command = arguments.text("command");
    request.code = arguments.text("code");
    if (request.code) request.language = arguments.textOr("language", "");
    request.cwd = arguments.textOr("cwd", "");
    request.env = arguments.textMap("env");
    request.stdin_bytes = arguments.text("stdin");
    request.timeout = arguments.seconds("timeout_s").value_or(std::chrono::seconds(60));
    request.background = arguments.flag("background");
    // A model wants the files it made shown, and after a one shot has ended there is no other way.
    request.collect =
        arguments.has("collect") ? arguments.textList("collect") : std::vector<std::string>{"**"};
    request.packages = arguments.textList("packages");
    request.auto_packages = arguments.flag("auto_packages");
    request.idempotency_key = arguments.textOr("idempotency_key", "");
    if (!request.idempotency_key.empty()) {
        request.fingerprint = arguments.fingerprint(services.secret_key);
    }
    request.started_at = call.started_at;
    return request;
}

void writeFiles(const Services& services, const CallContext& call, const std::string& workspace,
                const std::vector<controller::InlineFile>& files) {
    for (const controller::InlineFile& file : files) {
        std::size_t taken = 0;
        services.workspaces.writeFile(call.who, workspace, file.path, std::nullopt,
                                      [&](char* out, std::size_t size) {
                                          const std::size_t n = file.bytes.copy(out, size, taken);
                                          taken += n;
                                          return n;
                                      });
    }
}

std::shared_ptr<Execution> startIn(const std::string& workspace, const Services& services,
                                   const CallContext& call, const Arguments& arguments) {
    ExecutionRequest request = executionRequest(services, call, arguments);
    writeFiles(services, call, workspace, inlineFiles(arguments));
    if (const auto name = arguments.text("context")) {
        controller::ContextRequest wanted;
        wanted.name = *name;
        wanted.language = request.language;
        const auto context = services.contexts.create(call.who, workspace, wanted);
        request.context = context.id;
        request.language = context.language;
    }
    return services.executions.start(call.who, workspace, request);
}

ToolResult wholeResult(const Services& services, const Execution& execution,
                       const std::string& origin) {
    const controller::ExecutionView view = execution.view();
    ToolResult result = runResult(view);
    addArtifacts(result, services, view, origin);
    return result;
}

/// The result of an execution that has been started.
Task<ToolResult> ended(const Services& services, CallContext call, bool background,
                       std::shared_ptr<Execution> execution) {
    if (background) {
        ToolResult begun = runResult(execution->view());
        begun.take_back = [&services, who = call.who, id = execution->id()] {
            services.executions.kill(who, id);
        };
        co_return begun;
    }
    Task<> end = untilEnd(services, call, execution, OnCancel::Kills);
    co_await end;
    execution->requireAnswer();
    co_return wholeResult(services, *execution, call.origin);
}

Task<ToolResult> runOnce(const Services& services, CallContext call, Arguments arguments) {
    controller::WorkspaceRequest where = claimFor(call);
    where.pool = arguments.text("pool");
    where.image = arguments.text("image");
    where.language = arguments.text("language");
    where.gpu = gpuWish(arguments);
    where.files = inlineFiles(arguments);
    const bool background = arguments.flag("background");
    Task<std::shared_ptr<Execution>> start = services.executions.startOneShot(
        call.who, std::move(where), executionRequest(services, call, arguments));
    std::shared_ptr<Execution> execution = co_await start;
    Task<ToolResult> end = ended(services, std::move(call), background, std::move(execution));
    ToolResult result = co_await end;
    co_return result;
}

ToolOutcome run(const Services& services, const CallContext& call, const Arguments& arguments) {
    checkCombination(arguments);
    const auto workspace = arguments.text("workspace_id");
    if (!workspace) return runOnce(services, call, arguments);
    return ended(services, call, arguments.flag("background"),
                 startIn(*workspace, services, call, arguments));
}

Task<ToolResult> runStatus(const Services& services, CallContext call, Arguments arguments) {
    const std::string id = arguments.textOr("run_id", "");
    const std::shared_ptr<Execution> execution = services.executions.find(call.who, id);
    if (const auto signal = arguments.text("signal"); signal && !execution->finished()) {
        services.executions.signal(call.who, id, *signal);
    }
    const TimePoint until =
        call.started_at + arguments.seconds("wait_s").value_or(std::chrono::seconds(0));
    Task<> end = untilEnd(services, call, execution, OnCancel::LeavesRunning, until);
    co_await end;
    const std::optional<std::uint64_t> since = arguments.number("since");
    co_return since ? runOutputFrom(*execution, *since)
                    : wholeResult(services, *execution, call.origin);
}

Json runSchema() {
    return objectSchema(
        {{"code", stringParam("Source code to run, in a fresh interpreter unless context is "
                              "given. This or command. The value of a last expression is shown.")},
         {"language", stringParam("Of the code, e.g. \"python\"; without it the image's first.")},
         {"command", stringParam("A shell command line, run by sh. This or code.")},
         {"workspace_id", stringParam("Where to run; without it in a fresh sandbox that is "
                                      "destroyed afterwards with its files.")},
         {"context", stringParam("A name of your choosing, e.g. \"main\": code runs in the "
                                 "workspace's interpreter of that name, made at first use, where "
                                 "variables and imports stay for later runs.")},
         {"timeout_s", numberParam("Kill it after this many seconds; default 60. Many clients "
                                   "give up after 60 s: use background for longer work.",
                                   1, kMaxTimeout)},
         {"stdin", stringParam("Given to standard input.", 0)},
         {"env", textMapParam("Environment variables for this run.")},
         {"cwd", stringParam("Directory to run in, relative to the workspace.")},
         {"files", filesParam("Files to write before the run.")},
         {"collect", textListParam("Patterns of files to return if the run made or changed them; "
                                   "default [\"**\"], all; [] returns none.",
                                   16)},
         {"gpus", gpusParam()},
         {"packages",
          textListParam("Packages it needs, e.g. \"numpy==2.1\"; missing ones are "
                        "installed first, within timeout_s. Needs network Mirror or Egress.",
                        64)},
         {"auto_packages", boolParam("With Python code: also install well-known packages for its "
                                     "missing imports.")},
         {"background", boolParam("Return at once with a run_id for run_status.")},
         {"pool", stringParam("Without workspace_id: the pool to take a sandbox from.")},
         {"image",
          stringParam("Without workspace_id: the image to run in, e.g. \"python:3.9-slim\". "
                      "pool_list tells which; one that must be fetched first may take "
                      "minutes: if the call times out, repeat it.")},
         {"idempotency_key", stringParam("Repeating the call with the same key runs nothing "
                                         "twice.")}});
}

}  // namespace

std::vector<Tool> runTools(const Services& services) {
    std::vector<Tool> tools;
    tools.push_back(
        {"run", "Run code or a command",
         "Runs code or a shell command in a sandbox and gives status, stdout and stderr. Without "
         "workspace_id it is a one shot: nothing is left behind. With it, files stay for later "
         "runs; variables only with context. Figures, tables, the last value and images that the "
         "run made are shown, other files it made are listed with links. Pools: {pools}.",
         runSchema(), toolHints(false, true, false, true),
         [&services](const CallContext& call, const Arguments& arguments) {
             return run(services, call, arguments);
         }});
    tools.push_back(
        {"run_status", "Look at a run",
         "Gives the state and output of a run: in the background, still running, or "
         "the rest of a long output.",
         objectSchema(
             {{"run_id", stringParam("The id that run gave, \"ex_…\".")},
              {"wait_s", numberParam("Wait up to this many seconds for it to finish.", 0, 300)},
              {"since", integerParam("Give the output from this byte on (stdout and stderr "
                                     "counted together).",
                                     0, 1LL << 40)},
              {"signal", Json{{"type", "string"},
                              {"description", "Send it this signal first."},
                              {"enum", {"INT", "TERM", "KILL"}}}}},
             {"run_id"}),
         toolHints(false, false, true),
         [&services](const CallContext& call, const Arguments& arguments) {
             return runStatus(services, call, arguments);
         }});
    return tools;
}

}  // namespace hearth::mcp
