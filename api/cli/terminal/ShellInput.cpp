#include "api/cli/terminal/ShellInput.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/Error.h"

namespace hearth::cli {

ShellInput::ShellInput(const Remote& remote, TerminalMode& terminal)
    : remote_(remote.another()), terminal_(terminal) {
    wake_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!wake_) throwErrno("eventfd");
    thread_ = std::jthread([this] { watch(); });
}

ShellInput::~ShellInput() {
    done_ = true;
    const std::uint64_t one = 1;
    const ssize_t written = ::write(wake_.get(), &one, sizeof(one));
    static_cast<void>(written);  // an eventfd always takes eight bytes
    thread_.join();
}

void ShellInput::start(const std::string& execution, TerminalSize size) {
    {
        const MutexLock lock(mutex_);
        if (!execution_.empty()) return;
        execution_ = execution;
        told_ = size;
    }
    terminal_.raw();
    const std::uint64_t one = 1;
    const ssize_t written = ::write(wake_.get(), &one, sizeof(one));
    static_cast<void>(written);  // an eventfd always takes eight bytes
}

std::string ShellInput::execution() const {
    const MutexLock lock(mutex_);
    return execution_;
}

void ShellInput::watch() {
    bool started = false;
    while (!done_) {
        const short keys = started && !hung_up_ ? POLLIN : 0;
        std::array<pollfd, 3> fds = {{{signals_.get(), POLLIN, 0},
                                      {wake_.get(), POLLIN, 0},
                                      {keys != 0 ? STDIN_FILENO : -1, keys, 0}}};
        if (::poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) return;
        if (fds[1].revents != 0) {
            std::uint64_t count = 0;
            const ssize_t got = ::read(wake_.get(), &count, sizeof(count));
            static_cast<void>(got);  // only clears it
            if (!started && !execution().empty()) {
                started = true;
                if (ended_by_ != 0) kill();  // requested before there was anything to kill
                resize();
            }
        }
        if (done_) return;
        while (const int signal = signals_.next()) onSignal(signal);
        if (fds[2].revents != 0) onKeys();
    }
}

void ShellInput::onSignal(int signal) {
    if (signal == SIGWINCH) {
        resize();
    } else if (signal == SIGTSTP) {
        stopLikeOthers();
    } else if (signal == SIGCONT) {
        if (!execution().empty())
            terminal_.raw();  // the process that stopped this one may have changed it
        resize();
    } else {
        const int earlier = ended_by_.exchange(signal);
        if (earlier != 0) {
            terminal_.restore();
            ::_exit(128 + signal);
        }
        kill();
    }
}

void ShellInput::stopLikeOthers() {
    terminal_.restore();
    ::raise(SIGSTOP);  // returns when the process is continued; SIGCONT makes it raw again
}

void ShellInput::onKeys() {
    std::array<char, 65536> keys{};
    const ssize_t got = ::read(STDIN_FILENO, keys.data(), keys.size());
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (got <= 0) {  // the terminal has gone
        hung_up_ = true;
        ended_by_ = SIGHUP;
        kill();
        return;
    }
    std::string bytes = escape_.pass({keys.data(), static_cast<std::size_t>(got)});
    try {
        if (!bytes.empty()) {
            remote_.raw("POST", "/v1/executions/" + execution() + "/stdin", std::move(bytes));
        }
    } catch (const RemoteError&) {
        // The shell has ended, or reads its input too slowly: its end shows the result.
    } catch (const Error&) {
        // The server is away. Keys are not sent twice: a command must not run twice.
    }
    if (escape_.left()) {
        hung_up_ = true;
        ended_by_ = SIGHUP;
        kill();
    }
}

void ShellInput::resize() {
    const TerminalSize now = terminal_.size();
    std::string target;
    {
        const MutexLock lock(mutex_);
        if (execution_.empty() || now == told_) return;
        told_ = now;
        target = "/v1/executions/" + execution_ + "/resize";
    }
    try {
        remote_.send("POST", target, {{"cols", now.cols}, {"rows", now.rows}});
    } catch (const RemoteError&) {
        // It has ended: there is no window any more.
    } catch (const Error&) {
        const MutexLock lock(mutex_);
        told_ = {0, 0};  // so that the next change is sent
    }
}

void ShellInput::kill() noexcept {
    const std::string target = execution();
    if (target.empty()) return;
    try {
        remote_.send("DELETE", "/v1/executions/" + target);
    } catch (const std::exception&) {
        terminal_.restore();
        ::_exit(128 + ended_by_);  // the server cannot be reached; the deadline ends the execution
    }
}

}  // namespace hearth::cli
