#include "api/http/tls/TlsTunnels.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <new>
#include <utility>

#include "base/Error.h"

namespace hearth::api {
namespace {

constexpr std::chrono::seconds kLook{1};
/// The longest wait at the end for bytes that the front has already sent.
constexpr std::chrono::seconds kFarewell{2};
/// The most connections that the front has closed and no longer counts: above it the oldest is
/// dropped. So a client that takes no last bytes holds no more than these.
constexpr std::size_t kMostLeaving = 256;

}  // namespace

TlsTunnels::TlsTunnels(TlsFiles files, metrics::Metrics& metrics, metrics::Log& log,
                       const Clock& clock)
    : metrics_(metrics),
      log_(log),
      clock_(clock),
      certificate_(std::move(files), metrics, log),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      bell_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      looked_(clock.now()) {
    if (!epoll_ || !bell_) throwErrno("epoll_create1, eventfd");
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = 0;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, bell_.get(), &event) != 0) throwErrno("epoll_ctl");
    thread_ = std::jthread([this](const std::stop_token& stop) {
        try {
            run(stop);
        } catch (const std::exception& e) {  // the thread's top
            log_.error("tls.failed", {{"error", e.what()}});
        }
    });
}

TlsTunnels::~TlsTunnels() {
    thread_.request_stop();
    wake();
}

Fd TlsTunnels::take(Fd client) {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) != 0) {
        throwErrno("socketpair");
    }
    Fd plain(ends[0]);
    {
        const MutexLock lock(mutex_);
        taken_.push_back({std::move(client), Fd(ends[1])});
    }
    wake();
    return plain;
}

void TlsTunnels::wake() {
    const std::uint64_t one = 1;
    static_cast<void>(::write(bell_.get(), &one, sizeof(one)));
}

void TlsTunnels::run(const std::stop_token& stop) {
    std::array<epoll_event, 64> events;
    TimePoint until = TimePoint::max();
    while (!stop.stop_requested() || (!held_.empty() && clock_.now() < until)) {
        const int patience =
            again_.empty() ? static_cast<int>(std::chrono::milliseconds(kLook).count()) : 0;
        const int count =
            ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), patience);
        if (count < 0 && errno != EINTR) throwErrno("epoll_wait");
        const TimePoint now = clock_.now();
        if (stop.stop_requested() && until == TimePoint::max()) until = now + kFarewell;
        for (const std::uint64_t id : std::exchange(again_, {})) serve(id, now);
        for (int i = 0; i < count; ++i) {
            const std::uint64_t id = events[static_cast<std::size_t>(i)].data.u64;
            if (id == 0) {
                adopt();
            } else {
                serve(id, now);
            }
        }
        if (now - looked_ >= kLook) look(now);
    }
}

void TlsTunnels::adopt() {
    std::uint64_t rings = 0;
    static_cast<void>(::read(bell_.get(), &rings, sizeof(rings)));
    std::vector<Taken> taken;
    {
        const MutexLock lock(mutex_);
        taken.swap(taken_);
    }
    const std::shared_ptr<SSL_CTX> context = certificate_.context();
    const TimePoint now = clock_.now();
    for (Taken& each : taken) {
        try {
            auto tunnel =
                std::make_unique<TlsTunnel>(std::move(each.client), std::move(each.plain), context);
            const std::uint64_t id = next_id_++;
            held_[id].tunnel = std::move(tunnel);
            serve(id, now);
        } catch (const std::bad_alloc&) {  // the next one may find memory
            metrics_.tlsHandshake(false);
        }
    }
}

void TlsTunnels::look(TimePoint now) {
    looked_ = now;
    certificate_.refresh();
    std::vector<std::uint64_t> overdue;
    for (const auto& [id, held] : held_) {
        if (held.tunnel->overdue(now)) overdue.push_back(id);
    }
    for (const std::uint64_t id : overdue) drop(id);
}

void TlsTunnels::serve(std::uint64_t id, TimePoint now) {
    const auto found = held_.find(id);
    if (found == held_.end()) return;  // it ended earlier in this batch
    try {
        moveOn(id, found->second, now);
    } catch (const std::exception& e) {  // the connection's top: the other ones continue
        log_.error("tls.connection_failed", {{"error", e.what()}});
        drop(id);
    }
}

void TlsTunnels::drop(std::uint64_t id) {
    const auto found = held_.find(id);
    if (found == held_.end()) return;
    if (found->second.leaving) --leaving_count_;
    held_.erase(found);
}

void TlsTunnels::moveOn(std::uint64_t id, Held& held, TimePoint now) {
    const bool before = held.tunnel->shaken();
    const TlsTunnel::State state = held.tunnel->move(now);
    if (!before && held.tunnel->shaken()) metrics_.tlsHandshake(true);
    if (state == TlsTunnel::State::Over) {
        if (!held.tunnel->shaken()) metrics_.tlsHandshake(false);
        return drop(id);
    }
    if (state == TlsTunnel::State::Again) again_.push_back(id);
    watch(id, held.tunnel->client(), held.client_events, held.tunnel->clientEvents());
    watch(id, held.tunnel->plain(), held.plain_events, held.tunnel->plainEvents());
    if (!held.leaving && held.tunnel->leaving()) {
        held.leaving = true;
        ++leaving_count_;
        leaving_.push_back(id);
    }
    while (leaving_count_ > kMostLeaving || leaving_.size() > 2 * kMostLeaving) {
        const std::uint64_t first = leaving_.front();
        leaving_.pop_front();
        drop(first);  // it may have ended
    }
}

/// A socket without wanted events is not watched: its end would be reported repeatedly.
void TlsTunnels::watch(std::uint64_t id, int fd, std::uint32_t& before, std::uint32_t wanted) {
    if (wanted == before) return;
    epoll_event event{};
    event.events = wanted;
    event.data.u64 = id;
    const int what = before == 0 ? EPOLL_CTL_ADD : wanted == 0 ? EPOLL_CTL_DEL : EPOLL_CTL_MOD;
    if (::epoll_ctl(epoll_.get(), what, fd, &event) != 0) throwErrno("epoll_ctl");
    before = wanted;
}

}  // namespace hearth::api
