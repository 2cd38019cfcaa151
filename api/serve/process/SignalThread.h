#pragma once

#include <atomic>
#include <chrono>
#include <stop_token>
#include <thread>

#include "base/Mutex.h"

namespace hearth::program {

/// SIGTERM and SIGINT, which end the server, and SIGHUP, taken by a thread of their own: whatever
/// the server is busy with, the first of the former is heard at once, and a second one ends the
/// process without waiting for anything. Between the first and the end the server goes on for a
/// while, so that balancers that ask whether it is ready send nobody to it any more. Blocks them
/// for the thread that makes it and for those that it starts afterwards. Thread-safe.
class SignalThread {
public:
    /// `delay`: from the first signal to the end.
    explicit SignalThread(std::chrono::seconds delay);
    ~SignalThread();
    SignalThread(const SignalThread&) = delete;
    SignalThread& operator=(const SignalThread&) = delete;

    enum class News { End, HangUp };
    /// Blocks until there is news. Once the end has come, it is the only news.
    News wait();
    /// True after a first signal; the end follows by itself.
    bool leaving() const { return leaving_; }
    /// Stopped at the end; its callbacks run in the thread of the signals.
    std::stop_token ended() const { return end_.get_token(); }
    /// Does not wait for a signal.
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
