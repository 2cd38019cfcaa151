#pragma once

#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "api/cli/Cli.h"

namespace hearth::test {

/// The result of a call of the program without a server: its two streams and its status.
struct Outcome {
    int status = -1;
    std::string out;
    std::string err;
};

/// Runs a command without an environment.
inline Outcome call(const std::vector<std::string>& arguments) {
    std::ostringstream out;
    std::ostringstream err;
    Outcome outcome;
    outcome.status = cli::runCommand(arguments, cli::Console{out, err},
                                     [](const std::string&) { return std::nullopt; });
    outcome.out = out.str();
    outcome.err = err.str();
    return outcome;
}

}  // namespace hearth::test
