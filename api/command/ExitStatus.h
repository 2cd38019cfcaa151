#pragma once

#include <string>

namespace hearth::cli {

/// The meanings of the program's exit status. `run`, `exec` and `shell` return their program's own
/// status instead of Ok and Failure.
inline constexpr int kOk = 0;
inline constexpr int kFailure = 1;
inline constexpr int kUsage = 2;
inline constexpr int kNotFound = 3;
inline constexpr int kUnreachable = 4;
/// The program ended with 0, but not all of its output was received.
inline constexpr int kIncomplete = 5;
/// The status of `timeout`(1) for a program that was killed at its deadline.
inline constexpr int kTimedOut = 124;
/// Nobody reads the output any more: 128 + SIGPIPE.
inline constexpr int kUnheard = 141;
/// The user ended the command: 128 + SIGINT, as in a shell.
inline constexpr int kInterrupted = 130;

/// The table of all statuses for the help, in lines of 80 characters.
std::string exitStatusText();

}  // namespace hearth::cli
