#include "pool/agent/transport/TcpDialer.h"

#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <system_error>
#include <utility>

#include "base/Error.h"

namespace hearth::agent {
namespace {

using Time = std::chrono::steady_clock::time_point;

constexpr int kIdleSeconds = 30;
constexpr int kProbeSeconds = 10;
constexpr int kProbes = 3;
constexpr int kUnansweredMs = 60'000;

[[noreturn]] void refuse(std::errc code, const std::string& what) {
    throw std::system_error(std::make_error_code(code), what);
}

void waitFor(const Fd& fd, short events, Time until) {
    for (;;) {
        const auto left =
            std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
        if (left.count() <= 0) refuse(std::errc::timed_out, "the agent does not answer");
        pollfd entry{fd.get(), events, 0};
        const int n = ::poll(&entry, 1, static_cast<int>(left.count()));
        if (n > 0) return;
        if (n < 0 && errno != EINTR) throwErrno("poll");
    }
}

/// Sends small frames at once, and notices within a minute that an agent's node has vanished.
void tune(const Fd& fd) {
    const auto set = [&fd](int level, int name, int value) {
        ::setsockopt(fd.get(), level, name, &value, sizeof(value));
    };
    set(IPPROTO_TCP, TCP_NODELAY, 1);
    set(SOL_SOCKET, SO_KEEPALIVE, 1);
    set(IPPROTO_TCP, TCP_KEEPIDLE, kIdleSeconds);
    set(IPPROTO_TCP, TCP_KEEPINTVL, kProbeSeconds);
    set(IPPROTO_TCP, TCP_KEEPCNT, kProbes);
    set(IPPROTO_TCP, TCP_USER_TIMEOUT, kUnansweredMs);
}

Fd connectTo(const PodAgent& agent, Time until) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
    addrinfo* found = nullptr;
    if (::getaddrinfo(agent.address.c_str(), std::to_string(agent.port).c_str(), &hints, &found) !=
        0) {
        refuse(std::errc::invalid_argument, "not an IP address: " + agent.address);
    }
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> address(found, &::freeaddrinfo);
    Fd fd(::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd) throwErrno("socket");
    tune(fd);
    if (::connect(fd.get(), address->ai_addr, address->ai_addrlen) == 0) return fd;
    if (errno != EINPROGRESS) throwErrno("connect to the agent");
    waitFor(fd, POLLOUT, until);
    int error = 0;
    socklen_t size = sizeof(error);
    if (::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) throwErrno("getsockopt");
    if (error != 0) throwErrno(error, "connect to the agent");
    return fd;
}

/// Never sends in part: the messages are smaller than any socket's buffer.
void sendWhole(const Fd& fd, const std::string& bytes) {
    if (::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT) !=
        static_cast<ssize_t>(bytes.size())) {
        throwErrno("send to the agent");
    }
}

std::string explain(secure::ServerHandshake::Refusal refusal) {
    using Refusal = secure::ServerHandshake::Refusal;
    switch (refusal) {
        case Refusal::NoAgent:
            return "what listens there is no agent of this version";
        case Refusal::OtherPod:
            return "the agent of another Pod has the address";
        case Refusal::OtherIdentity:
            return "what listens there is not the agent that the Pod began with";
        case Refusal::NoProof:
            return "what listens there could not prove to be the agent";
        case Refusal::None:
            break;
    }
    return "the agent refused this server's key";
}

void meet(const Fd& fd, secure::ServerHandshake& side, Time until) {
    std::array<char, 512> bytes;
    for (;;) {
        waitFor(fd, POLLIN, until);
        // Peeked first: bytes of the records must stay in the socket.
        const ssize_t n = ::recv(fd.get(), bytes.data(), bytes.size(), MSG_PEEK | MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
        if (n < 0 && errno != ECONNRESET) throwErrno("receive from the agent");
        if (n <= 0) refuse(std::errc::permission_denied, explain(side.refusal()));
        std::string_view wire(bytes.data(), static_cast<std::size_t>(n));
        std::string out;
        const secure::Progress progress = side.receive(wire, out);
        const std::size_t taken = static_cast<std::size_t>(n) - wire.size();
        if (::recv(fd.get(), bytes.data(), taken, MSG_DONTWAIT) < 0) throwErrno("recv");
        if (progress == secure::Progress::Refused) {
            refuse(std::errc::permission_denied, explain(side.refusal()));
        }
        if (progress == secure::Progress::Done) return;
        if (!out.empty()) sendWhole(fd, out);
    }
}

}  // namespace

TcpDialer::TcpDialer(const secure::ServerKey& key, PodAgent agent,
                     std::chrono::milliseconds timeout)
    : key_(key), agent_(std::move(agent)), timeout_(timeout) {}

AgentLink TcpDialer::operator()(secure::Purpose purpose) const {
    const Time until = std::chrono::steady_clock::now() + timeout_;
    Fd fd = connectTo(agent_, until);
    secure::ServerHandshake side(key_, agent_.identity, agent_.pod_uid, purpose);
    meet(fd, side, until);
    return {std::move(fd), std::make_unique<SealedWire>(side.take())};
}

}  // namespace hearth::agent
