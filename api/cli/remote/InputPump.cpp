#include "api/cli/remote/InputPump.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/Error.h"

namespace hearth::cli {

InputPump::InputPump(const Remote& remote)
    : remote_(remote.another()), wake_(::eventfd(0, EFD_CLOEXEC)) {
    if (!wake_) throwErrno("eventfd");
}

InputPump::~InputPump() {
    const std::uint64_t one = 1;
    const ssize_t written = ::write(wake_.get(), &one, sizeof(one));
    static_cast<void>(written);  // an eventfd always takes eight bytes
}

void InputPump::start(const std::string& execution) {
    if (thread_.joinable()) return;
    thread_ =
        std::jthread([this, target = "/v1/executions/" + execution + "/stdin"] { pump(target); });
}

void InputPump::pump(const std::string& target) {
    std::array<char, 65536> piece{};
    try {
        while (true) {
            std::array<pollfd, 2> fds = {{{STDIN_FILENO, POLLIN, 0}, {wake_.get(), POLLIN, 0}}};
            if (::poll(fds.data(), fds.size(), -1) < 0) {
                if (errno == EINTR) continue;
                return;
            }
            if (fds[1].revents != 0) return;
            const ssize_t got = ::read(STDIN_FILENO, piece.data(), piece.size());
            if (got < 0 && errno == EINTR) continue;
            if (got <= 0) break;
            remote_.raw("POST", target, std::string(piece.data(), static_cast<std::size_t>(got)));
        }
        remote_.raw("POST", target + "?close=true");
    } catch (const std::exception&) {
        // The program has ended or closed its input: its own end shows the result.
        return;
    }
}

}  // namespace hearth::cli
