#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "api/cli/Console.h"
#include "api/cli/Options.h"
#include "api/cli/ServeConfig.h"
#include "controller/PoolSpec.h"
#include "controller/Tokens.h"

namespace hearth::cli {

/// What the command line asks of the rest of the program; main() fills it.
struct Program {
    /// Serves until stopped; gives the exit status. The configuration has been read, not checked
    /// against the machine.
    std::function<int(const ServeConfig&)> serve;
    /// Opens the tokens of a data directory without a server, for `token --offline`; may be empty.
    std::function<std::unique_ptr<controller::Tokens>(const std::string& data_dir)> tokens;
    /// The pools that a data directory declares, whether a server runs or not; may be empty.
    std::function<std::vector<controller::Pool>(const std::string& data_dir)> pools = {};
    /// The pools of the manifests that `serve` would be given; may be empty.
    std::function<std::vector<controller::Pool>(const ServeConfig&)> manifests = {};
};

/// One call of one command.
struct Invocation {
    const Options& options;
    const Console& console;
    const Environment& environment;
    const Program& program;
};

/// A command: what the parser and the help know, and what it does. `run` gives the exit status and
/// may throw; the dispatcher turns that into a message and a status.
struct Command {
    CommandSpec spec;
    std::function<int(const Invocation&)> run;
};

// One file each; Cli.cpp holds the table.
Command makeServe();
Command makeConfig();
Command makeMcp();
Command makeRun();
Command makeOpen();
Command makeShell();
Command makeCopy();
Command makeGet();
Command makeApply();
Command makeDelete();
Command makeDrain();
Command makeImage();
Command makeToken();
Command makePackages();
Command makeMcpConfig();
Command makeCompletion();
Command makeDoctor();
Command makeBench();

}  // namespace hearth::cli
