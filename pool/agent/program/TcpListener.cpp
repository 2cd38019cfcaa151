#include "pool/agent/program/TcpListener.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

namespace hearth::agent {
namespace {

/// Long, so that a tenant's connections, which are soon closed, do not fill the queue.
constexpr int kWaiting = 1'024;
constexpr int kIdleSeconds = 30;
constexpr int kProbeSeconds = 10;
constexpr int kProbes = 3;
constexpr int kUnansweredMs = 60'000;

void setOption(int socket, int level, int name, int value) {
    setsockopt(socket, level, name, &value, sizeof(value));
}

template <typename Address>
bool listenAtAddress(const Fd& fd, const Address& address) {
    return bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 &&
           listen(fd.get(), kWaiting) == 0;
}

}  // namespace

Fd listenOnTcp(std::uint16_t port) {
    if (Fd both(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0)); both) {
        setOption(both.get(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
        sockaddr_in6 any{};
        any.sin6_family = AF_INET6;
        any.sin6_port = htons(port);
        if (listenAtAddress(both, any)) return both;
    }
    Fd four(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));  // there is no IPv6 here
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_port = htons(port);
    return four && listenAtAddress(four, any) ? std::move(four) : Fd();
}

bool isOwnAddress(const sockaddr_storage& peer) {
    sockaddr_storage address = peer;
    socklen_t size = sizeof(sockaddr_in);
    const Fd probe(socket(address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (address.ss_family == AF_INET6) {
        setOption(probe.get(), IPPROTO_IPV6, IPV6_V6ONLY, 0);  // IPv4 peers come as IPv6 addresses
        reinterpret_cast<sockaddr_in6&>(address).sin6_port = 0;
        size = sizeof(sockaddr_in6);
    } else {
        reinterpret_cast<sockaddr_in&>(address).sin_port = 0;
    }
    // The kernel binds only to addresses of its own.
    return probe && bind(probe.get(), reinterpret_cast<const sockaddr*>(&address), size) == 0;
}

std::string addressText(const sockaddr_storage& peer) {
    char text[INET6_ADDRSTRLEN] = "";
    const void* address = &reinterpret_cast<const sockaddr_in&>(peer).sin_addr;
    if (peer.ss_family == AF_INET6) {
        address = &reinterpret_cast<const sockaddr_in6&>(peer).sin6_addr;
    }
    inet_ntop(peer.ss_family, address, text, sizeof(text));
    return text;
}

void tuneTcp(int socket) {
    setOption(socket, IPPROTO_TCP, TCP_NODELAY, 1);
    setOption(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
    setOption(socket, IPPROTO_TCP, TCP_KEEPIDLE, kIdleSeconds);
    setOption(socket, IPPROTO_TCP, TCP_KEEPINTVL, kProbeSeconds);
    setOption(socket, IPPROTO_TCP, TCP_KEEPCNT, kProbes);
    setOption(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, kUnansweredMs);
}

}  // namespace hearth::agent
