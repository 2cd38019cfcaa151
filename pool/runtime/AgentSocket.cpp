#include "pool/runtime/AgentSocket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>

#include "base/Error.h"

namespace hearth::pool {
namespace {

constexpr int kBacklog = 16;
constexpr timeval kConnectPatience{1, 0};

Fd newSocket() {
    Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!fd) throwErrno("socket");
    return fd;
}

sockaddr_un addressOf(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) throwErrno(ENAMETOOLONG, "socket", path);
    std::copy(path.begin(), path.end(), address.sun_path);
    return address;
}

/// Sets the limit that also applies to connect() (unix(7)); zero: no limit.
void setSendTimeout(int fd, timeval timeout) {
    if (::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout) != 0) {
        throwErrno("setsockopt", "SO_SNDTIMEO");
    }
}

}  // namespace

Fd listenAt(const std::string& path, mode_t mode) {
    Fd fd = newSocket();
    const sockaddr_un address = addressOf(path);
    // The mode is set on the descriptor first, because bind() uses it for the file, less the umask.
    if (::fchmod(fd.get(), 0600) != 0) throwErrno("chmod", path);
    if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        throwErrno("bind", path);
    }
    if (mode != 0600 && ::chmod(path.c_str(), mode) != 0) throwErrno("chmod", path);
    if (::listen(fd.get(), kBacklog) != 0) throwErrno("listen", path);
    return fd;
}

Fd connectTo(const std::string& path) {
    Fd fd = newSocket();
    const sockaddr_un address = addressOf(path);
    // A stopped agent accepts no connection: once its queue is full, a connect would wait
    // forever.
    setSendTimeout(fd.get(), kConnectPatience);
    while (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        if (errno != EINTR) throwErrno("connect", path);
    }
    setSendTimeout(fd.get(), {});
    return fd;
}

}  // namespace hearth::pool
