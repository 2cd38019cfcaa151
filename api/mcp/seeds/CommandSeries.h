#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "controller/contract/Executions.h"

namespace hearth::mcp::seeds {

/// The most bytes that a command of a series has: what the kernel takes as one argument.
inline constexpr std::size_t kLongestCommand = 100'000;

/// Commands that run one after the other and stop at the first that fails, as ONE execution: it
/// has one deadline, one id and one kill, and whoever waits for it holds no thread, which a
/// handler that starts them one by one would. A small shell program runs them, each in a shell of
/// its own, and writes a line of its own behind the output of each, on both channels: its mark,
/// the command's number and its exit status. So no file is needed, bytes are what they were, and
/// what was written before a timeout is there.
///
/// The mark is random, but not secret from the commands: one that forges it deceives its own
/// caller about itself, which it can do by plain output as well.
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
/// The results of those that ran. Where output was so long that its middle was dropped, marks may
/// be gone with it: such commands succeeded, since others came after them.
std::vector<CommandResult> seriesResults(const std::vector<std::string>& commands,
                                         const std::string& mark,
                                         const controller::ExecutionView& view);

/// Output of runs of which some were series, without their marks.
std::string withoutMarks(std::string_view output);

}  // namespace hearth::mcp::seeds
