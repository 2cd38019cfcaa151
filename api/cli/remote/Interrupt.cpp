#include "api/cli/remote/Interrupt.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "base/Error.h"

namespace hearth::cli {

Interrupt::Interrupt(const Remote& remote, std::string context, const Console& console)
    : remote_(remote.another()), context_(std::move(context)), console_(console) {
    wake_ = Fd(::eventfd(0, EFD_CLOEXEC));
    if (!wake_) throwErrno("eventfd");
    thread_ = std::jthread([this] { watch(); });
}

Interrupt::~Interrupt() {
    const std::uint64_t one = 1;
    const ssize_t written = ::write(wake_.get(), &one, sizeof(one));
    static_cast<void>(written);  // an eventfd always takes eight bytes
    thread_.join();
}

void Interrupt::target(const std::string& execution) {
    const MutexLock lock(mutex_);
    execution_ = execution;
}

bool Interrupt::act(int signals, const std::string& execution) {
    const int gentle = context_.empty() ? 0 : 1;
    if (execution.empty() || signals > gentle + 1) return false;
    try {
        if (signals <= gentle) {
            remote_.send("POST", "/v1/contexts/" + context_ + "/interrupt");
            console_.note("hearth: interrupted; once more ends the context, too");
        } else {
            remote_.send("DELETE", "/v1/executions/" + execution);
        }
    } catch (const RemoteError&) {
        // It has just ended, or cannot be interrupted: another signal does more.
    } catch (const std::exception&) {
        return false;  // the server cannot be reached; the deadline ends the execution
    }
    return true;
}

void Interrupt::watch() {
    for (int signals = 0; true;) {
        std::array<pollfd, 2> fds = {{{signals_.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}}};
        if (::poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) return;
        if ((fds[1].revents & POLLIN) != 0) return;
        if (signals_.next() == 0) continue;
        std::string execution;
        {
            const MutexLock lock(mutex_);
            execution = execution_;
        }
        happened_ = true;
        if (!act(++signals, execution)) ::_exit(kInterrupted);
    }
}

}  // namespace hearth::cli
