#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "controller/contract/Executions.h"

namespace hearth::mcp::seeds {

/// The most bytes that a command of a series has: what the kernel takes as one argument.
inline constexpr std::size_t kLongestCommand = 100'000;

/// Runs commands one after the other, until one fails, as ONE execution: one deadline, one id, one
/// kill, and no thread waits for it. A small shell program runs each command in its own shell and
/// then writes a line on both channels: its mark, the command's number and its exit status. So no
/// file is needed, output bytes are unchanged, and output before a timeout is kept.
///
/// The mark is random, but the commands could read it: a command that forges it deceives only its
/// own caller, as plain output could.
struct CommandSeries {
    std::vector<std::string> argv;
    std::string mark;
};
CommandSeries commandSeries(const std::vector<std::string>& commands);

struct CommandResult {
    std::string command;
    int exit_code = -1;  ///< -1: it was broken off
    std::string stdout_bytes;
    std::string stderr_bytes;
};
/// The results of the commands that ran. If the middle of a long output was dropped, marks may be
/// missing with it: those commands succeeded, since others ran after them.
std::vector<CommandResult> seriesResults(const std::vector<std::string>& commands,
                                         const std::string& mark,
                                         const controller::ExecutionView& view);

/// The output of runs, without the marks of those that were series.
std::string withoutMarks(std::string_view output);

}  // namespace hearth::mcp::seeds
