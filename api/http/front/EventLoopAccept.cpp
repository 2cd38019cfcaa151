#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "api/http/front/EventLoop.h"
#include "base/Error.h"

namespace hearth::api {
namespace {

constexpr std::chrono::milliseconds kAcceptPause{100};
constexpr int kAcceptsAtOnce = 64;
/// Lines per second in the access log for clients that were refused before their request.
constexpr int kToldRefusals = 50;

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
            continue;  // that client has left again
        }
        try {
            admit(std::move(fd), peerOf(address));
        } catch (const std::system_error& e) {
            core_.log.error("http.accept_failed", {{"error", e.what()}});
            return pauseAccepting();  // there is no descriptor, or no memory, for it
        } catch (const std::exception& e) {
            core_.log.error("http.accept_failed", {{"error", e.what()}});
        }
    }
}

void EventLoop::admit(Fd fd, Peer peer) {
    if (connections_.size() >= core_.options.connections && !shedOfAll()) {
        return refuse(std::move(fd), peer, "connections");
    }
    const auto same = per_address_.find(peer.counted_as);
    if (same != per_address_.end() && same->second >= core_.options.connections_per_address &&
        !core_.proxies.trusts(peer.text) && !shedOf(peer.counted_as)) {
        return refuse(std::move(fd), peer, "connections_per_address");
    }
    auto connection = std::make_unique<Connection>();
    connection->id = next_id_++;
    connection->fd = core_.tls ? core_.tls->take(std::move(fd)) : std::move(fd);
    connection->peer = std::move(peer.text);
    connection->counted_as = std::move(peer.counted_as);
    connection->loopback = peer.loopback;
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
    if (connection.among != nullptr) return;
    connection.among = &per_address_[connection.counted_as];
    ++*connection.among;
}

void EventLoop::uncount(Connection& connection) {
    if (connection.among == nullptr) return;
    if (--*std::exchange(connection.among, nullptr) == 0) {
        per_address_.erase(connection.counted_as);
    }
}

template <typename Candidate>
Connection* EventLoop::leastWorth(const Candidate& candidate) const {
    const TimePoint now = core_.clock.now();
    Connection* least = nullptr;
    std::pair<Worth, std::uint64_t> least_key{Worth::Kept, 0};
    for (const auto& [id, connection] : connections_) {
        const std::pair key{worthOf(*connection, now), id};
        if (key >= least_key || !candidate(*connection, key.first)) continue;
        least = connection.get();
        least_key = key;
    }
    return least;
}

bool EventLoop::shedOf(const std::string& address) {
    return shed(
        leastWorth([&](const Connection& each, Worth) { return each.counted_as == address; }));
}

bool EventLoop::shedOfAll() {
    std::size_t most = 0;
    for (const auto& [address, held] : per_address_) most = std::max(most, held);
    Connection* least = leastWorth([&](const Connection& each, Worth) {
        return each.among != nullptr && *each.among == most;
    });
    if (least == nullptr || worthOf(*least, core_.clock.now()) >= Worth::Fresh) {
        const auto idles = [](const Connection&, Worth worth) { return worth <= Worth::Idle; };
        if (Connection* idle = leastWorth(idles)) least = idle;
    }
    return shed(least);
}

bool EventLoop::shed(Connection* connection) {
    if (connection == nullptr) return false;
    core_.metrics.httpRefused("shed_idle");
    close(*connection);
    return true;
}

EventLoop::Worth EventLoop::worthOf(const Connection& connection, TimePoint now) const {
    switch (connection.place) {
        case Place::Flushing:
            return now - connection.moved_at >= core_.options.unread ? Worth::Unread
                                                                     : Worth::Answered;
        case Place::Reading:
            if (connection.served) return Worth::Idle;
            return now - connection.accepted_at >= core_.options.fresh ? Worth::Silent
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

void EventLoop::refuse(Fd fd, const Peer& peer, std::string_view reason) {
    core_.metrics.httpRefused(reason);
    AccessEntry entry;
    entry.client = peer.text;
    entry.started_at = core_.clock.now();
    // A TLS client would not understand it.
    if (!core_.tls) {
        constexpr std::string_view kBusy =
            "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\n"
            "Connection: close\r\n\r\n";
        // Only a courtesy: it may get lost.
        const ssize_t sent =
            ::send(fd.get(), kBusy.data(), kBusy.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        ::shutdown(fd.get(), SHUT_WR);
        entry.status = 503;
        entry.bytes_out = sent > 0 ? static_cast<std::uint64_t>(sent) : 0;
    }
    entry.whole = entry.bytes_out > 0;
    if (core_.options.access != nullptr && mayTellRefusal()) core_.options.access->record(entry);
}

bool EventLoop::mayTellRefusal() {
    const TimePoint now = core_.clock.now();
    if (now - refusals_since_ >= std::chrono::seconds(1)) {
        refusals_since_ = now;
        refusals_ = 0;
    }
    return ++refusals_ <= kToldRefusals;
}

void EventLoop::pauseAccepting() {
    core_.metrics.httpRefused("descriptors");
    core_.log.warn("http.accept_paused", {{"listener", core_.options.name}});
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, listener_, nullptr);
    accept_again_ = core_.clock.now() + kAcceptPause;
}

}  // namespace hearth::api
