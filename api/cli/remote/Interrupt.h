#pragma once

#include <atomic>
#include <string>
#include <thread>

#include "api/cli/remote/Remote.h"
#include "api/cli/remote/SignalFd.h"
#include "api/command/Console.h"
#include "base/Fd.h"
#include "base/Mutex.h"

namespace hearth::cli {

/// While it lives, SIGINT and SIGTERM kill the followed execution, by a request on a connection of
/// this object; one more signal, or one before the server has named the execution, ends the
/// program. In a context the first signal only interrupts, which keeps its variables, and says so.
/// Construct it before other threads start: it blocks the signals in their creator.
class Interrupt {
public:
    /// `context`: the one that the execution runs in; empty for none.
    Interrupt(const Remote& remote, std::string context, const Console& console);
    ~Interrupt();
    Interrupt(const Interrupt&) = delete;
    Interrupt& operator=(const Interrupt&) = delete;

    /// Names the execution to kill. Thread-safe, like everything except the constructor.
    void target(const std::string& execution);
    bool happened() const { return happened_; }

private:
    void watch();
    /// Sends what so many signals ask for. False if nothing is left to ask for.
    bool act(int signals, const std::string& execution);

    Remote remote_;
    const std::string context_;
    const Console& console_;
    SignalFd signals_{SIGINT, SIGTERM};
    Fd wake_;
    std::atomic<bool> happened_{false};
    Mutex mutex_;
    std::string execution_ HEARTH_GUARDED_BY(mutex_);
    std::jthread thread_;
};

}  // namespace hearth::cli
