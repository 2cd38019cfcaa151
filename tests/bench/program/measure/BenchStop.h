#pragma once

#include <csignal>
#include <exception>

namespace hearth::cli {

/// The caller asked to stop: thrown from the next check, so that everything made is removed.
class BenchStopped : public std::exception {
public:
    const char* what() const noexcept override { return "stopped"; }
};

/// While it lives, the first SIGINT or SIGTERM asks the benchmark to stop, so that workspaces,
/// pools and containers are removed; a second one ends the program. One at a time; the static
/// functions may be called from any thread.
class BenchStop {
public:
    BenchStop();
    ~BenchStop();
    BenchStop(const BenchStop&) = delete;
    BenchStop& operator=(const BenchStop&) = delete;

    static bool asked() noexcept;
    /// Throws BenchStopped once it was asked for.
    static void check();
    /// Sleeps, in steps that notice the signal, and checks.
    static void sleep(unsigned milliseconds);

private:
    struct sigaction interrupt_ {};
    struct sigaction terminate_ {};
};

}  // namespace hearth::cli
