#pragma once

#include <csignal>
#include <exception>

namespace hearth::cli {

/// Reports that the caller asked to stop. The next check throws it, so that all is removed.
class BenchStopped : public std::exception {
public:
    const char* what() const noexcept override { return "stopped"; }
};

/// While it lives, the first SIGINT or SIGTERM asks the benchmark to stop, so that workspaces,
/// pools and containers are removed. A second signal ends the program. Only one may exist at a
/// time. The static functions may be called from any thread.
class BenchStop {
public:
    BenchStop();
    ~BenchStop();
    BenchStop(const BenchStop&) = delete;
    BenchStop& operator=(const BenchStop&) = delete;

    static bool asked() noexcept;
    /// Throws BenchStopped after a stop was asked for.
    static void check();
    /// Sleeps in steps that notice the signal, and checks.
    static void sleep(unsigned milliseconds);

private:
    struct sigaction interrupt_ {};
    struct sigaction terminate_ {};
};

}  // namespace hearth::cli
