#include "metrics/LogOutput.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <string>

namespace hearth::metrics {

LogOutput::LogOutput(int fd) : fd_(fd) {
    struct stat st {};
    if (::fstat(fd, &st) != 0) return;
    if (S_ISSOCK(st.st_mode)) kind_ = Kind::Socket;
    if (!S_ISFIFO(st.st_mode) && ::isatty(fd) != 1) return;
    kind_ = Kind::Stream;
    const std::string path = "/proc/self/fd/" + std::to_string(fd);
    own_ = Fd(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

std::ptrdiff_t LogOutput::write(std::string_view bytes) const {
    while (true) {
        ssize_t n = -1;
        if (kind_ == Kind::Socket) {
            n = ::send(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        } else if (kind_ == Kind::Stream && !own_) {
            // It could not be opened a second time. A pipe that polls writable takes a page.
            pollfd ready{fd_, POLLOUT, 0};
            if (::poll(&ready, 1, 0) <= 0) return 0;
            n = ::write(fd_, bytes.data(), std::min<std::size_t>(bytes.size(), PIPE_BUF));
        } else {
            n = ::write(fd(), bytes.data(), bytes.size());
        }
        if (n >= 0) return n;
        if (errno == EINTR) continue;
        return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -1;
    }
}

void LogOutput::waitWritable(std::chrono::milliseconds patience) const {
    pollfd ready{fd(), POLLOUT, 0};
    ::poll(&ready, 1, static_cast<int>(patience.count()));
}

bool LogOutput::say(std::string_view text, std::chrono::milliseconds patience) const {
    const auto until = std::chrono::steady_clock::now() + patience;
    while (!text.empty()) {
        const std::ptrdiff_t n = write(text);
        if (n < 0) return false;
        text.remove_prefix(static_cast<std::size_t>(n));
        if (text.empty()) break;
        const auto left = until - std::chrono::steady_clock::now();
        if (left <= left.zero()) return false;
        waitWritable(std::chrono::ceil<std::chrono::milliseconds>(left));
    }
    return true;
}

}  // namespace hearth::metrics
