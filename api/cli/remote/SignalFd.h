#pragma once

#include <csignal>
#include <initializer_list>

#include "base/Fd.h"

namespace hearth::cli {

/// Signals as a descriptor. While it lives, they are blocked for the thread that made it and for
/// the threads that this one starts.
class SignalFd {
public:
    explicit SignalFd(std::initializer_list<int> signals);
    ~SignalFd() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    SignalFd(const SignalFd&) = delete;
    SignalFd& operator=(const SignalFd&) = delete;

    int get() const { return fd_.get(); }
    /// The next signal that has come; 0: none.
    int next() const;

private:
    sigset_t before_{};
    Fd fd_;
};

}  // namespace hearth::cli
