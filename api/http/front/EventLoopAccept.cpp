#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "api/http/front/EventLoop.h"
#include "base/Error.h"

namespace hearth::api {
namespace {

constexpr std::chrono::milliseconds kAcceptPause{100};
constexpr int kAcceptsAtOnce = 64;

struct Peer {
    std::string text;
    bool loopback = false;
};

Peer peerOf(const sockaddr_storage& address) {
    std::array<char, INET6_ADDRSTRLEN> text{};
    Peer peer;
    if (address.ss_family == AF_INET) {
        const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
        ::inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size());
        peer.text = text.data();
        peer.loopback = (ntohl(v4.sin_addr.s_addr) >> 24U) == 127;
    } else if (address.ss_family == AF_INET6) {
        const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
        ::inet_ntop(AF_INET6, &v6.sin6_addr, text.data(), text.size());
        peer.text = text.data();
        peer.loopback = IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
        if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
            peer.text = peer.text.substr(peer.text.rfind(':') + 1);
            peer.loopback = v6.sin6_addr.s6_addr[12] == 127;
        }
    }
    return peer;
}

}  // namespace

void EventLoop::acceptAll() {
    for (int i = 0; i < kAcceptsAtOnce && accepting_; ++i) {
        sockaddr_storage address{};
        socklen_t size = sizeof(address);
        Fd fd(::accept4(listener_, reinterpret_cast<sockaddr*>(&address), &size,
                        SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (!fd) {
            if (errno == EAGAIN) return;
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
                pauseAccepting();
                return;
            }
            continue;  // that client has gone again
        }
        Peer peer = peerOf(address);
        try {
            admit(std::move(fd), std::move(peer.text), peer.loopback);
        } catch (const std::exception& e) {
            core_.log.error("http.accept_failed", {{"error", e.what()}});
        }
    }
}

void EventLoop::admit(Fd fd, std::string peer, bool loopback) {
    if (connections_.size() >= core_.options.connections) {
        // The address with the most connections loses one.
        const auto most =
            std::max_element(per_address_.begin(), per_address_.end(),
                             [](const auto& a, const auto& b) { return a.second < b.second; });
        if (most == per_address_.end() || !shedIdle(most->first)) {
            return refuse(std::move(fd), "connections");
        }
    }
    const auto same = per_address_.find(peer);
    if (same != per_address_.end() && same->second >= core_.options.connections_per_address &&
        !core_.proxies.trusts(peer) && !shedIdle(peer)) {
        return refuse(std::move(fd), "connections_per_address");
    }
    auto connection = std::make_unique<Connection>();
    connection->id = next_id_++;
    connection->fd = std::move(fd);
    connection->peer = std::move(peer);
    connection->loopback = loopback;
    connection->accepted_at = core_.clock.now();
    epoll_event event{};
    event.events = EPOLLIN | EPOLLONESHOT;
    event.data.u64 = connection->id;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, connection->fd.get(), &event) != 0) {
        throwErrno("epoll_ctl");
    }
    count(*connection);
    Connection& added = *connection;
    connections_.emplace(added.id, std::move(connection));
    core_.connections.store(connections_.size());
    setDeadline(added, core_.clock.now() + core_.options.first_byte);
}

void EventLoop::count(Connection& connection) {
    if (connection.counted) return;
    connection.counted = true;
    ++per_address_[connection.peer];
}

void EventLoop::uncount(Connection& connection) {
    if (!connection.counted) return;
    connection.counted = false;
    const auto address = per_address_.find(connection.peer);
    if (--address->second == 0) per_address_.erase(address);
}

bool EventLoop::shedIdle(const std::string& peer) {
    const TimePoint now = core_.clock.now();
    Connection* least = nullptr;
    for (const auto& [id, connection] : connections_) {
        if (connection->peer != peer || worthOf(*connection, now) == Worth::Kept) continue;
        if (least == nullptr ||
            std::pair(worthOf(*connection, now), id) < std::pair(worthOf(*least, now), least->id)) {
            least = connection.get();
        }
    }
    if (least == nullptr) return false;
    core_.metrics.httpRefused("shed_idle");
    close(*least);
    return true;
}

EventLoop::Worth EventLoop::worthOf(const Connection& connection, TimePoint now) const {
    switch (connection.place) {
        case Place::Flushing:
            return now - connection.moved_at >= core_.options.unread ? Worth::Unread
                                                                     : Worth::Answered;
        case Place::Reading:
            return connection.served || now - connection.accepted_at >= core_.options.fresh
                       ? Worth::Idle
                       : Worth::Fresh;
        case Place::Closing:
            return Worth::Closing;
        case Place::AtWorker:
        case Place::Suspended:
        case Place::Streaming:
            return Worth::Kept;
    }
    return Worth::Kept;
}

void EventLoop::refuse(Fd fd, std::string_view reason) {
    core_.metrics.httpRefused(reason);
    constexpr std::string_view kBusy =
        "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\n"
        "Connection: close\r\n\r\n";
    // A courtesy: whether it arrives does not matter.
    static_cast<void>(::send(fd.get(), kBusy.data(), kBusy.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
    ::shutdown(fd.get(), SHUT_WR);
}

void EventLoop::pauseAccepting() {
    core_.metrics.httpRefused("descriptors");
    core_.log.warn("http.accept_paused", {{"listener", core_.options.name}});
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, listener_, nullptr);
    accept_again_ = core_.clock.now() + kAcceptPause;
}

}  // namespace hearth::api
