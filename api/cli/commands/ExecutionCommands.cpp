#include <unistd.h>

#include <optional>
#include <set>
#include <string>

#include "api/cli/commands/Commands.h"
#include "api/cli/remote/ExecutionFollower.h"
#include "api/cli/remote/InputPump.h"
#include "api/cli/remote/Kinds.h"
#include "api/cli/remote/References.h"
#include "api/cli/remote/RunOutput.h"
#include "api/command/OutputFormat.h"
#include "base/Error.h"
#include "base/http/Url.h"

namespace hearth::cli {
namespace {

std::string executionTarget(const std::string& id) {
    return "/v1/executions/" + percentEncode(id);
}

std::string executionsTarget(const std::string& workspace) {
    return "/v1/workspaces/" + percentEncode(workspace) + "/executions";
}

/// Prints the server's own log.
int serverLogs(const Invocation& call) {
    if (!call.options.positional().empty()) {
        throw UsageError("--server prints the server's log, not that of an execution",
                         "leave out " + call.options.positional()[0]);
    }
    Remote remote(call.options);
    const std::string target =
        "/v1/logs?limit=" + percentEncode(call.options.get("tail").value_or("100"));
    if (!call.options.on("follow")) {
        for (const Json& line : remote.list(target)) {
            call.console.out << printable(textAt(line, "text")) << '\n';
        }
        return kOk;
    }
    http::ClientRequest request;
    request.target = target;
    remote.events(request, [&](const http::SseEvent& event) {
        call.console.out << printable(textAt(parseJson(event.data), "text")) << '\n' << std::flush;
        return call.console.out.good();
    });
    if (!call.console.out.good()) return kOk;
    call.console.error("the server has ended the stream", "it may be restarting; follow it again");
    return kUnheard;
}

int logs(const Invocation& call) {
    if (call.options.on("server")) return serverLogs(call);
    if (call.options.positional().empty()) {
        throw UsageError("which execution's output?",
                         "hearth logs EXECUTION, or hearth logs --server");
    }
    if (call.options.source("tail") == Source::Flag) {
        throw UsageError("--tail goes with --server", "hearth logs EXECUTION | tail -n LINES");
    }
    Remote remote(call.options);
    const std::string id = executionId(remote, call.options.positional()[0]);
    if (call.options.on("follow")) {
        RunOutput output(call.console, false);
        ExecutionFollower(remote, output, {}).follow(id);
        if (!output.finished()) return kUnheard;
        return output.lostBytes() > 0 ? kIncomplete : kOk;
    }
    const Json execution = remote.get(executionTarget(id));
    call.console.out << textAt(execution, "stdout") << std::flush;
    call.console.err << textAt(execution, "stderr") << std::flush;
    const auto dropped = execution.find("droppedBytes");
    if (dropped == execution.end() || *dropped == 0) return kOk;
    call.console.note("hearth: " + dropped->dump() + " bytes of its output were not kept");
    return kIncomplete;
}

int attach(const Invocation& call) {
    Remote remote(call.options);
    const std::string id = executionId(remote, call.options.positional()[0]);
    RunOutput output(call.console, false);
    std::optional<InputPump> input;
    if (call.options.on("stdin")) input.emplace(remote);
    const auto named = [&](const std::string&) {
        if (input) input->start(id);
    };
    ExecutionFollower(remote, output, {named, {}}).follow(id);
    input.reset();
    return output.finished() ? output.exitStatus() : kUnheard;
}

/// Workspaces in which something runs, including those of one shots; with `ended`, all workspaces.
std::set<std::string> workspacesOfAll(Remote& remote, bool ended) {
    std::set<std::string> ids;
    for (const Json& one : remote.list(ended ? "/v1/workspaces" : "/v1/executions")) {
        ids.insert(textAt(one, ended ? "id" : "workspaceId"));
    }
    return ids;
}

/// The executions of these workspaces. With `hidden`, a workspace that ends meanwhile has none, and
/// workspaces whose executions the token may not see are counted there.
std::vector<Json> executionsOf(Remote& remote, const std::set<std::string>& workspaces,
                               std::size_t* hidden) {
    std::vector<Json> executions;
    for (const std::string& workspace : workspaces) {
        try {
            for (Json& one : remote.list(executionsTarget(workspace))) {
                executions.push_back(std::move(one));
            }
        } catch (const RemoteError& e) {
            if (hidden == nullptr || (e.status() != 404 && e.status() != 410)) throw;
            if (e.status() == 404) ++*hidden;
        }
    }
    return executions;
}

bool isRunning(const Json& execution) {
    return textAt(execution, "status") == "running";
}

int ps(const Invocation& call) {
    const OutputFormat format = listFormat(call.options);
    Remote remote(call.options);
    const bool ended = call.options.on("all");
    const bool of_all = call.options.positional().empty();
    std::set<std::string> workspaces;
    if (of_all) workspaces = workspacesOfAll(remote, ended);
    for (const std::string& word : call.options.positional()) {
        workspaces.insert(workspaceId(remote, word));
    }
    std::size_t hidden = 0;
    std::vector<Json> executions = executionsOf(remote, workspaces, of_all ? &hidden : nullptr);
    if (hidden > 0) {
        call.console.note("hearth: workspaces of other tenants, not shown: " +
                          std::to_string(hidden) + " (needs the role admin)");
    }
    if (!ended) {
        std::erase_if(executions, [](const Json& one) { return !isRunning(one); });
        if (executions.empty() && format == OutputFormat::Table) {
            call.console.note(
                "no execution that you may see is running; --all also shows ended ones");
            return kOk;
        }
    }
    const Kind& listed = *findKind("executions");
    const Kind shown{listed.one, listed.many, "", listed.wide, listed.wide};
    showItems(call, shown, executions);
    return kOk;
}

/// Asks the execution to end; false if it has not ended after `patience`.
bool endsByItself(Remote& remote, const std::string& id, std::chrono::milliseconds patience) {
    remote.send("POST", executionTarget(id) + "/signal", {{"signal", "TERM"}});
    http::ClientRequest events;
    events.target = executionTarget(id) + "/events";
    events.until = SystemClock().now() + patience;
    bool ended = false;
    try {
        remote.events(events, [&](const http::SseEvent& event) {
            ended = event.type == "exit";
            return !ended;
        });
    } catch (const Error& e) {
        if (e.code() != ErrorCode::Deadline) throw;
    }
    return ended;
}

/// Resolves a word of `stop` that does not begin like an execution's id.
std::string workspaceToStop(Remote& remote, const std::string& word) {
    try {
        return workspaceId(remote, word);
    } catch (const Error& e) {
        if (e.code() != ErrorCode::NotFound) throw;
        throw Error(ErrorCode::NotFound, "no execution or workspace " + word)
            .hint("`hearth ps` lists what runs");
    }
}

int stop(const Invocation& call) {
    const auto patience = call.options.duration("time").value_or(std::chrono::seconds(10));
    Remote remote(call.options);
    int status = kOk;
    for (const std::string& word : call.options.positional()) {
        try {
            std::vector<std::string> ids;
            if (word.starts_with("ex_")) {
                ids.push_back(executionId(remote, word));
            } else {
                for (const Json& one :
                     executionsOf(remote, {workspaceToStop(remote, word)}, nullptr)) {
                    if (isRunning(one)) ids.push_back(nameOf(one));
                }
                if (ids.empty()) call.console.note("nothing runs in " + word);
            }
            for (const std::string& id : ids) {
                const bool running = isRunning(remote.get(executionTarget(id)));
                const char* how = running ? "stopped" : "had ended";
                if (running && !endsByItself(remote, id, patience)) {
                    remote.send("DELETE", executionTarget(id));
                    how = "killed";
                }
                call.console.out << "execution " << printable(id) << ' ' << how << '\n'
                                 << std::flush;
            }
        } catch (const RemoteError& e) {  // the others must stop all the same
            call.console.error(e.what(), e.hint());
            status = std::max(status, exitStatusOf(e));
        }
    }
    return status;
}

}  // namespace

Command makeLogs() {
    return {
        {.name = "logs",
         .arguments = "EXECUTION|--server",
         .summary = "Print what an execution has printed, or the server's log.",
         .details = "  hearth logs ex_77d1…\n"
                    "  hearth logs -f ex_77d1…       and go on until it ends\n"
                    "  hearth logs --server -f       the server's log (needs the role admin)\n\n"
                    "Output is kept for an hour after its workspace's end: all of it up to\n"
                    "--output-limit of `hearth run`, else its beginning and end, and then the\n"
                    "status is 5.",
         .flags = withClientFlags(
             {Flag{.name = "follow",
                   .letter = 'f',
                   .help = "Go on until the execution ends; with --server, until Ctrl-C",
                   .environment = false},
              Flag{.name = "server", .help = "The server's own log", .environment = false},
              Flag{.name = "tail",
                   .value = "LINES",
                   .help = "With --server: its last lines (100)",
                   .environment = false}}),
         .least = 0,
         .most = 1,
         .operands = {"@execution"}},
        logs};
}

Command makeAttach() {
    return {{.name = "attach",
             .arguments = "EXECUTION",
             .summary = "Follow an execution to its end, from the beginning of its output.",
             .details = "  hearth attach ex_77d1…\n"
                        "  hearth attach --stdin ex_77d1…\n\n"
                        "Ctrl-C leaves it running. Exits with the program's own status.",
             .flags = withClientFlags({Flag{.name = "stdin",
                                            .letter = 'i',
                                            .help = "Send standard input to the program",
                                            .environment = false}}),
             .least = 1,
             .most = 1,
             .operands = {"@execution"}},
            attach};
}

Command makePs() {
    return {
        {.name = "ps",
         .arguments = "[WORKSPACE…]",
         .summary = "List running executions, in all workspaces or in these.",
         .details = "  hearth ps\n"
                    "  hearth ps --all mine          also ended ones\n"
                    "  hearth stop $(hearth ps -q)",
         .flags = withClientFlags(withListFlags({Flag{.name = "all",
                                                      .letter = 'a',
                                                      .help = "Also ended ones, in open workspaces",
                                                      .environment = false}})),
         .least = 0,
         .most = 1000,
         .operands = {"@workspace"},
         .others = {{"--watch", "hearth get executions --watch"},
                    {"-w", "hearth ps WORKSPACE, or hearth get executions --watch"}}},
        ps};
}

Command makeStop() {
    return {
        {.name = "stop",
         .arguments = "EXECUTION|WORKSPACE…",
         .summary = "Ask executions to end, and kill those that do not.",
         .details = "  hearth stop ex_77d1…\n"
                    "  hearth stop mine              everything that runs in it; it stays open\n\n"
                    "Sends SIGTERM, waits, and kills. `hearth rm` ends a workspace.",
         .flags = withClientFlags({Flag{.name = "time",
                                        .letter = 't',
                                        .value = "DURATION",
                                        .help = "How long to wait before it is killed",
                                        .fallback = "10s",
                                        .environment = false}}),
         .least = 1,
         .most = 1000,
         .operands = {"@workspace"}},
        stop};
}

}  // namespace hearth::cli
