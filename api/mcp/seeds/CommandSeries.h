#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "controller/contract/Executions.h"

namespace hearth::mcp::seeds {

/// The most bytes of a command in a series: the kernel limits the length of one argument.
inline constexpr std::size_t kLongestCommand = 100'000;

/// Runs commands one after the other, until one fails, as ONE execution: one deadline, one id, one
/// kill, and no thread waits for it. A small shell program runs each command in its own shell and
/// then writes a line on both channels: the mark, the command's number and its exit status. So no
/// file is needed, output bytes are unchanged, and output before a timeout is kept.
///
/// The mark is random, but the commands can read it. A command that forges it deceives only its own
/// caller, as plain output could.
struct CommandSeries {
    std::vector<std::string> argv;
    std::string mark;
};
CommandSeries commandSeries(const std::vector<std::string>& commands);

struct CommandResult {
    std::string command;
    int exit_code = -1;  ///< -1: it did not end by itself
    std::string stdout_bytes;
    std::string stderr_bytes;
};
/// Returns the results of the commands that ran. If the middle of a long output was dropped, marks
/// may be missing; their commands succeeded, because other commands ran after them.
std::vector<CommandResult> seriesResults(const std::vector<std::string>& commands,
                                         const std::string& mark,
                                         const controller::ExecutionView& view);

/// Returns the output of runs without the marks of command series.
std::string withoutMarks(std::string_view output);

}  // namespace hearth::mcp::seeds
