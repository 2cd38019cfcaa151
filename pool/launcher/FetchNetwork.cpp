#include "pool/launcher/FetchNetwork.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <vector>

#include "base/Error.h"
#include "base/Fd.h"
#include "base/http/Url.h"

namespace hearth::pool::launcher {
namespace {

constexpr int kBacklog = 64;
constexpr std::uint16_t kHttp = 80;
constexpr std::uint16_t kHttps = 443;
constexpr std::uint32_t kLoopbackNet = 127;

void raiseLoopback() {
    const Fd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    ifreq request{};
    std::strncpy(request.ifr_name, "lo", IFNAMSIZ - 1);
    request.ifr_flags = IFF_UP | IFF_RUNNING;
    if (!fd || ::ioctl(fd.get(), SIOCSIFFLAGS, &request) != 0) {
        throwErrno("raise the loopback", "of a fetch");
    }
}

/// The child's part: makes the network and reports that, then waits for its end.
[[noreturn]] void holdNetwork(const Fd& ready) {
    char made = 0;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0) {
        try {
            raiseLoopback();
            made = 1;
        } catch (const std::exception&) {
            made = 0;
        }
    }
    static_cast<void>(::write(ready.get(), &made, 1));
    for (;;) ::pause();
}

/// Enters a network that belongs to a user namespace of a child. The launcher made that namespace,
/// so it may do anything in this network without any right over the host's
/// (user_namespaces(7), "Interaction of user namespaces and other types of namespaces").
void enterOwnNetwork() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throwErrno("pipe2");
    const Fd told(ends[0]);
    Fd ready(ends[1]);
    const pid_t child = ::fork();
    if (child < 0) throwErrno("fork", "the network of a fetch");
    if (child == 0) holdNetwork(ready);
    ready = Fd();
    char made = 0;
    static_cast<void>(::read(told.get(), &made, 1));
    const Fd network(
        ::open(("/proc/" + std::to_string(child) + "/ns/net").c_str(), O_RDONLY | O_CLOEXEC));
    const bool entered = made == 1 && network && ::setns(network.get(), CLONE_NEWNET) == 0;
    const int error = errno;
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    if (entered) return;
    errno = made == 1 ? error : EPERM;
    throwErrno("make a network", "for a fetch");
}

template <typename Address>
Fd listenOn(const Address& address, int family) {
    Fd fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (fd && ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
        ::listen(fd.get(), kBacklog) == 0) {
        return fd;
    }
    return {};
}

Fd listenV4(in_addr_t address, std::uint16_t port) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(port);
    at.sin_addr.s_addr = address;
    return listenOn(at, AF_INET);
}

Fd listenV6Loopback(std::uint16_t port) {
    sockaddr_in6 at{};
    at.sin6_family = AF_INET6;
    at.sin6_port = htons(port);
    at.sin6_addr = in6addr_loopback;
    return listenOn(at, AF_INET6);
}

/// Listens where programs look for a registry on the loopback.
std::vector<Fd> listenAs(const std::string& registry) {
    const std::size_t colon = std::min(registry.find(':'), registry.size());
    const std::string host = toLower(registry.substr(0, colon));
    std::vector<std::uint16_t> ports{kHttps, kHttp};
    if (colon < registry.size()) {
        std::uint16_t port = 0;
        std::from_chars(registry.data() + colon + 1, registry.data() + registry.size(), port);
        ports = {port};
    }
    const bool local = host == "localhost";
    in_addr address{htonl(INADDR_LOOPBACK)};
    if (!local && (::inet_pton(AF_INET, host.c_str(), &address) != 1 ||
                   ntohl(address.s_addr) >> IN_CLASSA_NSHIFT != kLoopbackNet)) {
        return {};
    }
    std::vector<Fd> out;
    for (const std::uint16_t port : ports) {
        if (Fd fd = listenV4(address.s_addr, port)) out.push_back(std::move(fd));
        if (!local) continue;
        if (Fd fd = listenV6Loopback(port)) out.push_back(std::move(fd));
    }
    return out;
}

void send(const std::vector<Fd>& listeners, int gateway) {
    std::vector<int> fds;
    for (const Fd& fd : listeners) fds.push_back(fd.get());
    const std::size_t bytes = fds.size() * sizeof(int);
    alignas(cmsghdr) std::array<char, CMSG_SPACE(8 * sizeof(int))> control{};
    char byte = 0;
    iovec part{&byte, 1};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(bytes);
    cmsghdr* const c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(bytes);
    std::memcpy(CMSG_DATA(c), fds.data(), bytes);
    if (::sendmsg(gateway, &message, MSG_NOSIGNAL) < 0) throwErrno("sendmsg", "listeners");
}

}  // namespace

std::string enterFetchNetwork(const std::string& registry, int gateway) {
    enterOwnNetwork();
    std::vector<Fd> listeners;
    listeners.push_back(listenV4(htonl(INADDR_LOOPBACK), 0));
    if (!listeners.front()) throwErrno("listen", "for a fetch");
    sockaddr_in at{};
    socklen_t size = sizeof at;
    if (::getsockname(listeners.front().get(), reinterpret_cast<sockaddr*>(&at), &size) != 0) {
        throwErrno("getsockname");
    }
    for (Fd& fd : listenAs(registry)) listeners.push_back(std::move(fd));
    send(listeners, gateway);
    return "http://127.0.0.1:" + std::to_string(ntohs(at.sin_port));
}

}  // namespace hearth::pool::launcher
