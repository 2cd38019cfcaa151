#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace hearth::sys {

/// A program that is watched while it runs.
struct Supervised {
    std::vector<std::string> argv;  ///< argv[0] is looked up in a fixed PATH
    /// Variables besides PATH, before the usual HOME and LC_ALL.
    std::vector<std::string> environment = {};
    std::chrono::seconds limit{600};
    /// Called in the child before the program; an exception ends the child with status 126 and
    /// becomes its last message.
    std::function<void()> enter = {};
    /// If set, the child then enters a user namespace whose only user, its root, is this uid of the
    /// host, and a pid namespace that ends with the program.
    std::optional<uid_t> root_is = {};
    /// Called in the parent some times a second; an exception ends the program and is passed on.
    std::function<void()> watch = {};
};

struct Outcome {
    int status = 0;         ///< exit status, 128 + signal if killed, 127 if it could not be started
    bool late = false;      ///< it was killed at its limit
    std::string out = {};   ///< standard output, at most 1 MiB of it
    std::string said = {};  ///< the end of standard error, at most 8 KiB
};

/// Runs the program to its end. It gets /dev/null for input and no other descriptor, leads a
/// process group of its own and dies with its parent. Only for a process with one thread.
Outcome supervise(const Supervised& program);

}  // namespace hearth::sys
