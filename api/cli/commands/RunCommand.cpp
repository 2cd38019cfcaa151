#include "api/cli/commands/Commands.h"
#include "api/cli/remote/ExecutionFollower.h"
#include "api/cli/remote/InputPump.h"
#include "api/cli/remote/Interrupt.h"
#include "api/cli/remote/RunOutput.h"
#include "api/cli/remote/RunRequest.h"
#include "api/command/OutputFormat.h"

namespace hearth::cli {
namespace {

CommandSpec runSpec() {
    const auto own = [](const char* name, char letter, const char* value, const char* help,
                        bool repeats = false) {
        return Flag{.name = name,
                    .letter = letter,
                    .value = value,
                    .help = help,
                    .repeats = repeats,
                    .environment = false};
    };
    std::vector<Flag> flags = {
        own("code", 'c', "CODE", "The code to run"),
        own("command", 0, "LINE", "A shell command to run instead"),
        own("language", 'l', "NAME", "The code's language; default: by the script's extension"),
        own("env", 'e', "K=V", "A variable for the program", true),
        own("cwd", 0, "DIR", "Where it runs; relative to the workspace"),
        own("image", 0, "IMAGE", "The image to run in, by name, reference or digest"),
        own("packages", 0, "SPEC", "A package it needs, as numpy==2.1; installed if missing", true),
        own("auto-packages", 0, "", "Also install well-known packages that Python code imports"),
        own("stdin", 'i', "", "Send standard input to the program"),
        Flag{.name = "pool", .letter = 'p', .value = "NAME", .help = "The pool to take from"},
        Flag{.name = "workspace",
             .letter = 'w',
             .value = "ID",
             .help = "Run in this workspace; default: a one shot in a fresh one"},
        own("context", 0, "NAME",
            "Run in the workspace's interpreter of this name; it keeps state"),
        Flag{.name = "timeout",
             .letter = 't',
             .value = "DURATION",
             .help = "When to kill it",
             .fallback = "60s"},
        own("output-limit", 0, "SIZE",
            "How much output the server keeps; a slow reader may miss the middle of the rest"),
    };
    for (Flag& flag : limitFlags()) flags.push_back(std::move(flag));
    return {
        .name = "run",
        .arguments = "[SCRIPT | -] [-- ARG…]",
        .summary = "Run code, a script or a command in a sandbox and stream its output.",
        .details =
            "  hearth run -l python -c 'print(1)'\n"
            "  hearth run script.py               the extension gives the language\n"
            "  hearth run script.py -- a b        with arguments\n"
            "  echo 'print(1)' | hearth run -l python -\n"
            "  hearth run --command 'echo hi | wc -c'\n"
            "  hearth run -- ls -l                an argument vector, no shell\n"
            "  hearth run -w ID --context main -c 'x = 1'   variables stay for the next run\n\n"
            "With -c the value of a last expression is printed after the output. Exits with\n"
            "the program's own status; 124 when it timed out, 128 + N when signal N ended it\n"
            "(137 when it ran out of memory), 5 where it succeeded and some of its output was\n"
            "lost. Ctrl-C kills it. Its output is streamed; --output json prints the\n"
            "execution after its end instead.",
        .flags = withClientFlags(withOutputFlags(std::move(flags), true)),
        .least = 0,
        .most = 1,
        .rest = true,
        .operands = {"@file"},
    };
}

int run(const Invocation& call) {
    const bool json = wantsJson(call.options);
    Remote remote(call.options);
    RunRequest request = makeRunRequest(call.options);
    for (const auto& [target, bytes] : request.uploads) remote.raw("PUT", target, bytes);
    if (!request.context.is_null()) {
        request.body["context"] =
            remote.send("POST", request.context_target, request.context).body.at("id");
    }
    RunOutput output(call.console, json, request.shows_value);
    Interrupt interrupt(remote);
    std::optional<InputPump> input;
    if (call.options.on("stdin")) input.emplace(remote);
    const auto named = [&](const std::string& execution) {
        interrupt.target(execution);
        if (input) input->start(execution);
    };
    ExecutionFollower(remote, output, {named, {}}).follow(request);
    input.reset();
    if (json) call.console.out << jsonText(output.result()) << '\n' << std::flush;
    return interrupt.happened() ? kInterrupted : output.exitStatus();
}

}  // namespace

Command makeRun() {
    return {runSpec(), run};
}

}  // namespace hearth::cli
