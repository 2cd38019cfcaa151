#pragma once

#include <string>
#include <vector>

#include "api/command/Command.h"

namespace hearth::cli {

/// The program: finds the command, parses its flags, runs it and turns every exception into "error:
/// …", "hint: …" and its exit status. Never throws.
int runCommand(int argc, char** argv);
/// The same with explicit arguments, console and environment, for tests.
int runCommand(const std::vector<std::string>& arguments, const Console& console,
               const Environment& environment);

/// Like runCommand(), for a program that is only this command.
int runProgram(int argc, char** argv, const Command& command);

/// All commands, in the order of the help.
std::vector<Command> allCommands();

}  // namespace hearth::cli
