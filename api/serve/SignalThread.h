#pragma once

#include <stop_token>
#include <thread>

#include "base/Mutex.h"

namespace hearth::program {

/// SIGTERM and SIGINT, which end the server, and SIGHUP, taken by a thread of their own: whatever
/// the server is busy with, the first of the former is heard at once, and a second one ends the
/// process without waiting for anything. Blocks them for the thread that makes it and for those
/// that it starts afterwards. Thread-safe.
class SignalThread {
public:
    SignalThread();
    ~SignalThread();
    SignalThread(const SignalThread&) = delete;
    SignalThread& operator=(const SignalThread&) = delete;

    enum class News { End, HangUp };
    /// Blocks until there is news. Once the end was asked for, it is the only news.
    News wait();
    /// Stopped when the end was asked for; its callbacks run in the thread of the signals.
    std::stop_token ended() const { return end_.get_token(); }
    /// As if a first signal had come; nothing if one has.
    void end();

private:
    void run();

    std::stop_source end_;
    Mutex mutex_;
    StoppableCondition changed_;
    bool hung_up_ HEARTH_GUARDED_BY(mutex_) = false;
    std::stop_source quit_;
    std::jthread thread_;
};

}  // namespace hearth::program
