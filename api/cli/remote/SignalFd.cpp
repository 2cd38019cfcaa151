#include "api/cli/remote/SignalFd.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include "base/Error.h"

namespace hearth::cli {

SignalFd::SignalFd(std::initializer_list<int> signals) {
    sigset_t set;
    ::sigemptyset(&set);
    for (const int signal : signals) ::sigaddset(&set, signal);
    fd_ = Fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!fd_) throwErrno("signalfd");
    ::pthread_sigmask(SIG_BLOCK, &set, &before_);
}

int SignalFd::next() const {
    signalfd_siginfo info{};
    if (::read(fd_.get(), &info, sizeof(info)) != sizeof(info)) return 0;
    return static_cast<int>(info.ssi_signo);
}

}  // namespace hearth::cli
