#pragma once

#include <atomic>
#include <chrono>
#include <stop_token>
#include <thread>

#include "base/Mutex.h"

namespace hearth::program {

/// A thread that takes SIGTERM and SIGINT, which end the server, and SIGHUP. It notices the first
/// SIGTERM or SIGINT at once even if the server is busy; a second one ends the process at once.
/// After the first one the server continues for a while, so that load balancers see that it is not
/// ready and send no more clients. The constructor blocks these signals for the calling thread and
/// for the threads that it starts afterwards. Thread-safe.
class SignalThread {
public:
    /// `delay`: the time from the first signal to the end.
    explicit SignalThread(std::chrono::seconds delay);
    ~SignalThread();
    SignalThread(const SignalThread&) = delete;
    SignalThread& operator=(const SignalThread&) = delete;

    enum class News { End, HangUp };
    /// Blocks until there is news. After the end has come, always returns News::End.
    News wait();
    /// True after a first signal; the end follows by itself.
    bool leaving() const { return leaving_; }
    /// Stopped at the end; its callbacks run in the signal thread, or in the caller of end().
    std::stop_token ended() const { return end_.get_token(); }
    /// Ends the server without a signal.
    void end();

private:
    void run();
    void hangUp();

    const std::chrono::seconds delay_;
    std::atomic<bool> leaving_ = false;
    std::stop_source end_;
    Mutex mutex_;
    StoppableCondition changed_;
    bool hung_up_ HEARTH_GUARDED_BY(mutex_) = false;
    std::stop_source quit_;
    std::jthread thread_;
};

}  // namespace hearth::program
