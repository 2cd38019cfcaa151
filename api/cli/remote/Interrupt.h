#pragma once

#include <atomic>
#include <csignal>
#include <string>
#include <thread>

#include "api/cli/remote/Remote.h"
#include "base/Fd.h"
#include "base/Mutex.h"

namespace hearth::cli {

/// While it lives, SIGINT and SIGTERM kill the followed execution, by a request on a connection of
/// this object; a second signal, or one before the server has named the execution, ends the
/// program. Construct it before other threads start: it blocks the signals in their creator.
class Interrupt {
public:
    explicit Interrupt(const Remote& remote);
    ~Interrupt();
    Interrupt(const Interrupt&) = delete;
    Interrupt& operator=(const Interrupt&) = delete;

    /// Names the execution to kill. Thread-safe, like everything except the constructor.
    void target(const std::string& execution);
    bool happened() const { return happened_; }

private:
    void watch();

    Remote remote_;
    sigset_t before_{};
    Fd signals_;
    Fd wake_;
    std::atomic<bool> happened_{false};
    Mutex mutex_;
    std::string execution_ HEARTH_GUARDED_BY(mutex_);
    std::jthread thread_;
};

}  // namespace hearth::cli
