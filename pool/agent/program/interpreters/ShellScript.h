#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hearth::agent {

/// The way to park a shell, and the text that makes it run a command as `/bin/sh -c COMMAND` would.
///
/// A parked shell is `/bin/sh -i +m -c hearth` (PROTOCOL.md). An interactive shell first reads the
/// file that ENV names, here a pipe, and only then parses its command, so an alias defined in that
/// file replaces it: the alias holds the text of `-c`, with its line numbers, its `$0`, and its
/// last command in the shell's own place. The opening makes it a normal shell (not interactive, no
/// ENV, no descriptor of the agent's) and reports that it is ready.
namespace shell {

/// The command line of a parked shell. Its environment, except ENV, is the caller's.
std::vector<std::string> parkedCommand();
/// The value of ENV when a parked shell begins; its pipe is kChannelFd.
std::string parkedEnv();
/// The text that is sent at once.
std::string_view opening();
/// The text on its stdout when it waits.
std::string_view ready();

/// Makes the rest of the script, after which the pipe ends: a shell that was started with `before`
/// then runs `command` with the environment `wanted` (sorted as by Environment). False if that
/// cannot be expressed exactly, or is too long for one piece: the command then needs its own
/// shell.
bool script(const std::vector<std::string>& before, const std::vector<std::string>& wanted,
            std::string_view command, std::string& out);

/// A command that tests a parked shell, and the output of a correct one.
std::string_view proof();
std::string_view proven();

/// True if `/bin/sh` is dash, the only shell known to work so.
bool isKnown();

}  // namespace shell

}  // namespace hearth::agent
