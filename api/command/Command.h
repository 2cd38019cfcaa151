#pragma once

#include <functional>

#include "api/command/Console.h"
#include "api/command/Options.h"

namespace hearth::cli {

/// One call of one command.
struct Invocation {
    const Options& options;
    const Console& console;
    const Environment& environment;
};

/// A command: its declaration for parser and help, and its action. `run` returns the exit status
/// and may throw; the dispatcher turns exceptions into a message and a status.
struct Command {
    CommandSpec spec;
    std::function<int(const Invocation&)> run;
};

}  // namespace hearth::cli
