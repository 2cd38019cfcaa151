#include <unistd.h>

#include "api/cli/top/Screen.h"
#include "api/cli/top/Top.h"
#include "api/cli/top/TopLoop.h"
#include "base/Units.h"

namespace hearth::cli {
namespace {

TopState stateOf(const Options& options) {
    TopState state;
    state.interval = options.duration("interval").value_or(state.interval);
    if (state.interval < kShortestInterval || state.interval > kLongestInterval) {
        throw UsageError("--interval is " + formatDuration(state.interval),
                         "give 0.5 to 60 seconds");
    }
    if (const auto column = options.get("sort")) state.sortBy(*column);
    state.filter = cellText(options.get("filter", ""));
    return state;
}

int top(const Invocation& call) {
    TopState state = stateOf(call.options);
    const bool terminal = ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1;
    if (terminal && !call.options.on("once")) {
        return runTopLoop(call.options, std::move(state), call.console.out_colour);
    }
    Remote remote(call.options);
    Overview overview{.url = remote.url()};
    const auto now = std::chrono::system_clock::now();
    read(remote, overview, now);
    call.console.out << composeText(overview, state, now);
    return kOk;
}

}  // namespace

Command makeTop() {
    return {
        {.name = "top",
         .arguments = "",
         .summary = "Watch pools and workspaces live.",
         .details =
             "  hearth top                             in a terminal; ? shows the keys\n"
             "  hearth top --filter red --sort age     rows with that text, the youngest first\n"
             "  hearth top --once                      as text, for scripts\n\n"
             "Numbers of claims are of the workspaces that it saw in the last minute. Without\n"
             "a terminal it prints once.",
         .flags = withClientFlags(
             {Flag{.name = "interval",
                   .value = "SECONDS",
                   .help = "Between two looks at the server, 0.5 to 60",
                   .fallback = "2",
                   .environment = false},
              Flag{.name = "sort",
                   .value = "COLUMN",
                   .help = "The column to sort by, of the lists that have it",
                   .environment = false},
              Flag{.name = "filter",
                   .value = "TEXT",
                   .help = "Only rows with this text in some column",
                   .environment = false},
              Flag{.name = "once", .help = "Print it once and exit", .environment = false}})},
        top};
}

}  // namespace hearth::cli
