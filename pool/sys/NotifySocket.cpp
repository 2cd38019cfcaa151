#include "pool/sys/NotifySocket.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <cstdlib>

#include "base/Fd.h"

namespace hearth::sys {

NotifySocket NotifySocket::ofEnvironment() {
    const char* socket = std::getenv("NOTIFY_SOCKET");
    NotifySocket manager(socket == nullptr ? "" : socket);
    ::unsetenv("NOTIFY_SOCKET");
    return manager;
}

void NotifySocket::tell(const std::string& words) const {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (socket_.empty() || socket_.size() >= sizeof(address.sun_path)) return;
    socket_.copy(address.sun_path, socket_.size());
    const bool abstract = address.sun_path[0] == '@';
    if (abstract) address.sun_path[0] = '\0';
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket_.size() +
                                               (abstract ? 0 : 1));
    const Fd out(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!out) return;
    // A manager that no longer listens misses it: the server serves all the same.
    static_cast<void>(::sendto(out.get(), words.data(), words.size(), MSG_NOSIGNAL,
                               reinterpret_cast<const sockaddr*>(&address), length));
}

}  // namespace hearth::sys
