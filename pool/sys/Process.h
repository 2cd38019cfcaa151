#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/Fd.h"

namespace hearth::sys {

/// A process that cannot be mistaken for a later one with the same number: a pidfd. Move-only.
class Process {
public:
    /// nullopt if there is no such process.
    static std::optional<Process> open(pid_t pid);

    pid_t pid() const noexcept { return pid_; }
    /// True once it has ended (it may still be a zombie). Waits `limit` at most.
    bool waitEnd(std::chrono::milliseconds limit) const;
    /// Kills it. A process that is already ending is fine.
    void kill() const;

private:
    Process(pid_t pid, Fd fd) : pid_(pid), fd_(std::move(fd)) {}

    pid_t pid_;
    Fd fd_;
};

/// Returns when the process started, in clock ticks since boot; start and number identify a
/// process. nullopt if it is gone or a zombie.
std::optional<std::uint64_t> processStartTime(pid_t pid);

/// Returns how many files the process holds open: by descriptors, and by mappings, which outlive
/// descriptors. What it cannot read counts as none. For root.
std::uint64_t openFiles(pid_t pid);

/// The path where run() looks for programs, regardless of the environment.
inline constexpr const char* kProgramPath =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A program to run from a single-threaded process.
struct Command {
    std::vector<std::string> argv;  ///< argv[0] is looked up in kProgramPath
    int pass_fd = -1;               ///< becomes descriptor 3; nothing above it is inherited
    std::string capture;            ///< standard output goes to this file; else /dev/null
};

/// Runs the program to its end with /dev/null as its standard streams, a clean environment and no
/// other descriptor; it dies with its parent. Returns the exit status, 128 + signal if it was
/// killed, 127 if it could not be started. Only for a process with one thread.
int run(const Command& command);

}  // namespace hearth::sys
