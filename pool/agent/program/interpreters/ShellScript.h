#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hearth::agent {

/// How a shell is parked, and the text that makes it run a command as `/bin/sh -c COMMAND` would.
///
/// A parked shell is `/bin/sh -i +m -c hearth` (PROTOCOL.md). An interactive shell first reads the
/// file that ENV names, here a pipe, and only then parses its command, so an alias defined in that
/// file replaces it: the alias holds the text of `-c`, with its line numbers, its `$0`, and its
/// last command in the shell's own place. The opening makes it a normal shell (not interactive, no
/// ENV, no descriptor of ours) and reports that it is ready.
namespace shell {

/// The environment of a parked shell, except ENV, and its command.
std::vector<std::string> parkedCommand();
/// ENV as a parked shell begins with it; its pipe is kChannelFd.
std::string parkedEnv();
/// Sent at once.
std::string_view opening();
/// The text on its stdout when it waits.
std::string_view ready();

/// The rest, after which the pipe ends: it makes a shell that was started with `before` run
/// `command` with the environment `wanted` (as of an Environment). False if that cannot be
/// expressed exactly, or is too long to be written in one piece: the command then needs its own
/// shell.
bool script(const std::vector<std::string>& before, const std::vector<std::string>& wanted,
            std::string_view command, std::string& out);

/// A command that tests a parked shell, and the output of a correct one.
std::string_view proof();
std::string_view proven();

/// Whether `/bin/sh` is dash, the only shell known to work so.
bool isKnown();

}  // namespace shell

}  // namespace hearth::agent
