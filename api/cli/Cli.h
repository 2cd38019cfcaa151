#pragma once

#include <string>
#include <vector>

#include "api/command/Command.h"

namespace hearth::cli {

/// The program: finds the command, parses its flags, runs it and turns whatever it throws into
/// "error: …", "hint: …" and its exit status. Never throws.
int runCommand(int argc, char** argv);
/// The same with everything given, for tests.
int runCommand(const std::vector<std::string>& arguments, const Console& console,
               const Environment& environment);

/// As runCommand(), for a program that is this one command.
int runProgram(int argc, char** argv, const Command& command);

/// All commands, in the order of the help.
std::vector<Command> allCommands();

}  // namespace hearth::cli
