#pragma once

#include <functional>
#include <string>
#include <vector>

#include "api/cli/Command.h"

namespace hearth::cli {

/// The program: finds the command, parses its flags, runs it and turns whatever it throws into
/// "error: …", "hint: …" and its exit status. Never throws.
int runCommand(int argc, char** argv, const Program& program);
/// The same for a program without offline tokens.
int runCommand(int argc, char** argv, const std::function<int(const ServeConfig&)>& serve);
/// The same with everything given, for tests.
int runCommand(const std::vector<std::string>& arguments, const Program& program,
               const Console& console, const Environment& environment);

/// All commands, in the order of the help.
std::vector<Command> allCommands();

}  // namespace hearth::cli
