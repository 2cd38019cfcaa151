#include "api/serve/SignalThread.h"

#include <pthread.h>
#include <unistd.h>

#include <csignal>
#include <utility>

namespace hearth::program {
namespace {

sigset_t ourSignals() {
    sigset_t signals;
    ::sigemptyset(&signals);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&signals, signal);
    return signals;
}

}  // namespace

SignalThread::SignalThread() {
    const sigset_t signals = ourSignals();
    ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    thread_ = std::jthread([this] { run(); });
}

SignalThread::~SignalThread() {
    quit_.request_stop();
    ::pthread_kill(thread_.native_handle(), SIGHUP);  // only wakes it
}

void SignalThread::run() {
    const sigset_t signals = ourSignals();
    bool first = true;
    for (;;) {
        int signal = 0;
        if (::sigwait(&signals, &signal) != 0) continue;
        if (quit_.stop_requested()) return;
        if (signal == SIGHUP) {
            const MutexLock lock(mutex_);
            hung_up_ = true;
        } else if (!std::exchange(first, false)) {
            ::_exit(1);
        } else {
            end();
        }
        changed_.notifyAll();
    }
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
