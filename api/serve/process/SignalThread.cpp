#include "api/serve/process/SignalThread.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <ctime>

namespace hearth::program {
namespace {

sigset_t ourSignals() {
    sigset_t signals;
    ::sigemptyset(&signals);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&signals, signal);
    return signals;
}

/// Returns the next signal, 0 if none came in that time.
int signalWithin(const sigset_t& signals, std::chrono::nanoseconds time) {
    const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
    const timespec limit{.tv_sec = seconds.count(), .tv_nsec = (time - seconds).count()};
    const int signal = ::sigtimedwait(&signals, nullptr, &limit);
    return signal > 0 ? signal : 0;
}

}  // namespace

SignalThread::SignalThread(std::chrono::seconds delay) : delay_(delay) {
    const sigset_t signals = ourSignals();
    ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    thread_ = std::jthread([this] { run(); });
}

SignalThread::~SignalThread() {
    quit_.request_stop();
    ::pthread_kill(thread_.native_handle(), SIGHUP);  // only wakes it
}

void SignalThread::run() {
    using Clock = std::chrono::steady_clock;
    constexpr std::chrono::nanoseconds kLong = std::chrono::hours(1);
    constexpr auto kNever = Clock::time_point::max();
    const sigset_t signals = ourSignals();
    auto due = kNever;  // the time of the end
    for (;;) {
        const std::chrono::nanoseconds left = due == kNever ? kLong : due - Clock::now();
        const int signal = signalWithin(signals, std::max(left, std::chrono::nanoseconds(0)));
        if (quit_.stop_requested()) return;
        if (signal == SIGHUP) {
            hangUp();
        } else if (signal != 0) {
            if (leaving_.exchange(true)) ::_exit(1);
            due = Clock::now() + delay_;
        }
        if (Clock::now() >= due) {
            due = kNever;
            end();
        }
    }
}

void SignalThread::hangUp() {
    const MutexLock lock(mutex_);
    hung_up_ = true;
    changed_.notifyAll();
}

void SignalThread::end() {
    end_.request_stop();
}

SignalThread::News SignalThread::wait() {
    const MutexLock lock(mutex_);
    changed_.wait(mutex_, end_.get_token(), [this]() HEARTH_REQUIRES(mutex_) { return hung_up_; });
    if (end_.stop_requested()) return News::End;
    hung_up_ = false;
    return News::HangUp;
}

}  // namespace hearth::program
