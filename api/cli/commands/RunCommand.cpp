#include "api/cli/commands/Commands.h"
#include "api/cli/commands/RunProgram.h"
#include "api/cli/remote/References.h"
#include "api/cli/remote/RunRequest.h"
#include "api/command/OutputFormat.h"

namespace hearth::cli {
namespace {

Flag ttyFlag(char letter = 0) {
    return Flag{.name = "tty",
                .letter = letter,
                .cluster = "it",
                .help = "Run it on this terminal, with keys and window size; also -it",
                .environment = false};
}

CommandSpec runSpec() {
    std::vector<Flag> flags = {
        ownFlag("code", 'c', "CODE", "The code to run"),
        ownFlag("command", 0, "LINE", "A shell command to run instead"),
        ownFlag("language", 'l', "NAME", "The code's language; default: by the script's extension"),
        ownFlag("file", 'f', "FILE", "A file to copy into its directory first", true),
        ownFlag("out", 0, "DIR", "A directory for the files that it made or changed"),
        ownFlag("save-results", 0, "DIR", "A directory for its figures, as result-1.png"),
        ownFlag("image", 0, "IMAGE", "The image to run in, by name, reference or digest"),
        ownFlag("packages", 0, "SPEC", "A package it needs, as numpy==2.1; installed if missing",
                true),
        ownFlag("auto-packages", 0, "",
                "Also install well-known packages that Python code imports"),
        ttyFlag(),
        Flag{.name = "pool", .letter = 'p', .value = "NAME", .help = "The pool to take from"},
        Flag{.name = "workspace",
             .letter = 'w',
             .value = "ID",
             .help = "Run in this workspace; default: a one shot in a fresh one"},
        ownFlag("context", 0, "NAME",
                "Run in the workspace's interpreter of this name; it keeps state"),
        Flag{.name = "timeout",
             .letter = 't',
             .value = "DURATION",
             .help = "Kill it after this time",
             .fallback = "60s; 24h with --tty or --detach"},
    };
    for (Flag& flag : programFlags()) flags.push_back(std::move(flag));
    for (Flag& flag : limitFlags()) flags.push_back(std::move(flag));
    return {
        .name = "run",
        .arguments = "[SCRIPT [ARG…] | -] [-- ARG…]",
        .summary = "Run code, a script or a command in a sandbox and stream its output.",
        .details =
            "  hearth run -l python -c 'print(1)'\n"
            "  hearth run script.py               the extension gives the language\n"
            "  hearth run script.py a b           with arguments; after -- also such as -v\n"
            "  echo 'print(1)' | hearth run -l python -\n"
            "  hearth run --command 'echo hi | wc -c'\n"
            "  hearth run -- ls -l                an argument vector, no shell\n"
            "  hearth run --file data.csv --out results plot.py\n"
            "  hearth run -w ID --context main -c 'x = 1'   variables stay for the next run\n\n"
            "What Python displays is printed after the output, with -c also the value of its\n"
            "last expression. Exits with the program's own status; 124 when it timed out,\n"
            "128 + N when signal N ended it (137 when it ran out of memory), 5 where it\n"
            "succeeded and some of its output was lost. Ctrl-C kills it; in a context the\n"
            "first one only interrupts, which keeps the variables. Its output is streamed;\n"
            "--output json prints the execution after its end instead.",
        .flags = withClientFlags(withOutputFlags(std::move(flags), true)),
        .least = 0,
        .most = 1000,
        .rest = true,
        .operands = {"@file"},
        .others = {{"--rm", "leave it out: without --workspace nothing stays"},
                   {"-v", "no files of this machine are mounted: use --file FILE and --out DIR"},
                   {"--volume",
                    "no files of this machine are mounted: use --file FILE and --out DIR"}},
    };
}

int run(const Invocation& call) {
    wantsJson(call.options);
    Remote remote(call.options);
    RunRequest request = makeRunRequest(
        call.options, [&](const std::string& word) { return workspaceId(remote, word); });
    return runProgramOf(call, remote, std::move(request));
}

CommandSpec execSpec() {
    std::vector<Flag> flags = programFlags();
    flags.push_back(ttyFlag('t'));
    flags.push_back(Flag{.name = "timeout",
                         .value = "DURATION",
                         .help = "Kill it after this time",
                         .fallback = "60s; 24h with --tty or --detach",
                         .environment = false});
    return {
        .name = "exec",
        .arguments = "WORKSPACE PROGRAM [ARG…]",
        .summary = "Run a program in a workspace.",
        .details =
            "  hearth exec mine ls -l\n"
            "  hearth exec -e LEVEL=2 ws_4f0c… python3 train.py --fast\n"
            "  hearth exec -it mine bash\n\n"
            "Flags of hearth stand before PROGRAM; what follows it is its own. Exits as\n"
            "`hearth run` does.",
        .flags = withClientFlags(withOutputFlags(std::move(flags), true)),
        .least = 1,
        .most = 1,
        .rest = true,
        .program_at = 1,
        .operands = {"@workspace"},
    };
}

int exec(const Invocation& call) {
    wantsJson(call.options);
    if (call.options.rest().empty()) makeExecRequest(call.options);  // reports the missing argument
    Remote remote(call.options);
    RunRequest request = makeExecRequest(
        call.options, [&](const std::string& word) { return workspaceId(remote, word); });
    return runProgramOf(call, remote, std::move(request));
}

}  // namespace

Command makeRun() {
    return {runSpec(), run};
}

Command makeExec() {
    return {execSpec(), exec};
}

}  // namespace hearth::cli
