#include "api/cli/commands/RunProgram.h"

#include <unistd.h>

#include <optional>

#include "api/cli/remote/ExecutionFollower.h"
#include "api/cli/remote/InputPump.h"
#include "api/cli/remote/Interrupt.h"
#include "api/cli/remote/RunOutput.h"
#include "api/cli/remote/SavedFiles.h"
#include "api/cli/terminal/ShellInput.h"
#include "api/command/OutputFormat.h"

namespace hearth::cli {
namespace {

int startDetached(const Invocation& call, Remote& remote, const RunRequest& request) {
    const Json execution = remote
                               .send("POST", request.target, request.body,
                                     {{"Idempotency-Key", request.idempotency_key}})
                               .body;
    call.console.out << (wantsJson(call.options) ? jsonText(execution)
                                                 : printable(textAt(execution, "id")))
                     << '\n';
    return kOk;
}

/// Saves the files that the user wants on this machine afterwards.
void save(const Invocation& call, Remote& remote, const Json& execution) {
    if (const auto folder = call.options.get("out")) {
        saveArtifacts(remote, execution, *folder, call.console);
    }
    if (const auto folder = call.options.get("save-results")) {
        saveResults(execution, *folder, call.console);
    } else if (!wantsJson(call.options)) {
        announceResults(execution, call.console);
    }
}

}  // namespace

int runOnTerminal(const Invocation& call, Remote& remote, RunRequest request) {
    if (::isatty(STDIN_FILENO) != 1 || ::isatty(STDOUT_FILENO) != 1) {
        throw UsageError("there is no terminal here",
                         "leave -it out; with --stdin the program reads standard input");
    }
    TerminalMode terminal(STDIN_FILENO);
    const TerminalSize size = terminal.size();
    Json& body = request.body;
    body["pty"] = {{"cols", size.cols}, {"rows", size.rows}};
    if (const auto term = call.environment("TERM"); term && !body["env"].contains("TERM")) {
        body["env"]["TERM"] = *term;
    }
    RunOutput output(call.console, false);
    ShellInput input(remote, terminal);
    const auto named = [&](const std::string& execution) { input.start(execution, size); };
    const auto ending = [&] { terminal.restore(); };
    ExecutionFollower(remote, output, {named, ending}).follow(request);
    const int signal = input.endedBy();
    return signal != 0 ? 128 + signal : exitStatusOf(output.result());
}

int runProgramOf(const Invocation& call, Remote& remote, RunRequest request) {
    const bool json = wantsJson(call.options);
    for (const auto& [target, bytes] : request.uploads) remote.raw("PUT", target, bytes);
    std::string context;
    if (!request.context.is_null()) {
        context = textAt(remote.send("POST", request.context_target, request.context).body, "id");
        request.body["context"] = context;
    }
    if (call.options.on("detach")) return startDetached(call, remote, request);
    if (call.options.on("tty")) return runOnTerminal(call, remote, std::move(request));
    RunOutput output(call.console, json, request.shows_value);
    Interrupt interrupt(remote, context, call.console);
    std::optional<InputPump> input;
    if (call.options.on("stdin")) input.emplace(remote);
    const auto named = [&](const std::string& execution) {
        interrupt.target(execution);
        if (input) input->start(execution);
    };
    ExecutionFollower(remote, output, {named, {}}).follow(request);
    input.reset();
    if (!output.finished()) {  // like a program whose pipe is closed: hearth run … | head
        remote.another().send("DELETE", "/v1/executions/" + output.executionId());
        return kUnheard;
    }
    if (json) call.console.out << jsonText(output.result()) << '\n' << std::flush;
    save(call, remote, output.result());
    return interrupt.happened() ? kInterrupted : output.exitStatus();
}

}  // namespace hearth::cli
