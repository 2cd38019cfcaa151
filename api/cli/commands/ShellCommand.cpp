#include <unistd.h>

#include <cstdlib>

#include "api/cli/commands/Commands.h"
#include "api/cli/commands/RunProgram.h"
#include "api/cli/remote/References.h"
#include "base/Ids.h"
#include "base/http/Url.h"

namespace hearth::cli {
namespace {

constexpr std::chrono::hours kLongestShell{12};

CommandSpec shellSpec() {
    std::vector<Flag> flags = {
        Flag{.name = "env",
             .letter = 'e',
             .value = "K=V",
             .help = "A variable for the shell",
             .repeats = true,
             .environment = false},
        Flag{.name = "cwd",
             .value = "DIR",
             .help = "The directory to start in; relative to the workspace",
             .environment = false},
        Flag{.name = "pool", .letter = 'p', .value = "NAME", .help = "The pool to take from"},
        Flag{.name = "image",
             .value = "IMAGE",
             .help = "The image to use, by name, reference or digest",
             .environment = false},
        Flag{.name = "timeout",
             .letter = 't',
             .value = "DURATION",
             .help = "End it after this time; never later than its workspace",
             .fallback = "12h",
             .environment = false},
    };
    return {
        .name = "shell",
        .arguments = "[WORKSPACE] [-- PROGRAM ARG…]",
        .summary = "A terminal in a workspace.",
        .details =
            "  hearth shell                       in a fresh workspace, which ends with it\n"
            "  hearth shell -p node               of that pool\n"
            "  hearth shell ws_4f0c…              in this one, which stays\n"
            "  hearth shell ws_4f0c… -- python3   another program instead\n\n"
            "Keys, Ctrl-C too, go to the program, and the window's size follows. The shell\n"
            "survives ten seconds without a connection, and a restart of the server. Enter\n"
            "and then ~. end one that hangs. Exits with the program's own status.",
        .flags = withClientFlags(std::move(flags)),
        .least = 0,
        .most = 1,
        .rest = true,
        .operands = {"@workspace"},
    };
}

RunRequest shellRequestOf(const Options& options, Remote& remote) {
    RunRequest request;
    request.idempotency_key = newId("run_");
    request.target = "/v1/executions";
    Json& body = request.body = Json::object();
    if (!options.positional().empty()) {
        for (const char* flag : {"pool", "image"}) {
            if (options.source(flag) == Source::Flag) {
                throw UsageError("--" + std::string(flag) + " and a workspace exclude each other",
                                 "a workspace already has its own");
            }
        }
        request.target = "/v1/workspaces/" +
                         percentEncode(workspaceId(remote, options.positional()[0])) +
                         "/executions";
    } else {
        if (const auto pool = options.get("pool")) body["pool"] = *pool;
        if (const auto image = options.get("image")) body["image"] = *image;
    }
    if (options.rest().empty()) {
        body["argv"] = {"/bin/sh", "-c",
                        "command -v bash >/dev/null 2>&1 && exec bash -l; exec sh -l"};
    } else {
        body["argv"] = options.rest();
    }
    body["env"] = variablesOf(options, "env");
    if (const auto cwd = options.get("cwd")) body["cwd"] = *cwd;
    const auto timeout = options.duration("timeout").value_or(kLongestShell);
    body["timeoutSeconds"] = static_cast<double>(timeout.count()) / 1000.0;
    return request;
}

int shell(const Invocation& call) {
    if (::isatty(STDIN_FILENO) != 1 || ::isatty(STDOUT_FILENO) != 1) {
        throw UsageError("a shell needs a terminal",
                         "for scripts: hearth run --stdin -- PROGRAM, or --command LINE");
    }
    Remote remote(call.options);
    return runOnTerminal(call, remote, shellRequestOf(call.options, remote));
}

}  // namespace

Command makeShell() {
    return {shellSpec(), shell};
}

}  // namespace hearth::cli
