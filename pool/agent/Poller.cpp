#include "pool/agent/Poller.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <vector>

#include "base/Error.h"
#include "pool/agent/Connection.h"

namespace hearth::agent {

Poller::Impl::Impl()
    : epoll_(::epoll_create1(EPOLL_CLOEXEC)), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!epoll_) throwErrno("epoll_create1");
    if (!wake_) throwErrno("eventfd");
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = 0;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event) != 0) throwErrno("epoll_ctl");
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

Poller::Impl::~Impl() {
    thread_.request_stop();
    wake();
}

void Poller::Impl::wake() noexcept {
    // Fails only when the counter is full, and then the thread is awake.
    static_cast<void>(::eventfd_write(wake_.get(), 1));
}

std::uint64_t Poller::Impl::add(int fd, std::weak_ptr<Connection> connection) {
    std::uint64_t id = 0;
    {
        const std::lock_guard lock(mutex_);
        id = next_id_++;
        connections_.emplace(id, std::move(connection));
    }
    epoll_event event{};
    event.events = EPOLLONESHOT;
    event.data.u64 = id;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
        const int error = errno;
        const std::lock_guard lock(mutex_);
        connections_.erase(id);
        throwErrno(error, "epoll_ctl");
    }
    return id;
}

void Poller::Impl::remove(std::uint64_t id, int fd) noexcept {
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
    const std::lock_guard lock(mutex_);
    connections_.erase(id);
}

void Poller::Impl::arm(std::uint64_t id, int fd) {
    epoll_event event{};
    event.events = EPOLLIN | EPOLLRDHUP | EPOLLONESHOT;
    event.data.u64 = id;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) != 0) throwErrno("epoll_ctl");
}

void Poller::Impl::disarm(std::uint64_t id, int fd) {
    // One-shot also here: a hang-up is always reported, and would be for ever.
    epoll_event event{};
    event.events = EPOLLONESHOT;
    event.data.u64 = id;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) != 0) throwErrno("epoll_ctl");
}

void Poller::Impl::schedule(std::weak_ptr<Connection> connection, Steady::time_point at) {
    bool first = false;
    {
        const std::lock_guard lock(mutex_);
        const auto placed = timers_.emplace(at, std::move(connection));
        first = placed == timers_.begin();
    }
    if (first && std::this_thread::get_id() != thread_.get_id()) wake();
}

std::shared_ptr<Connection> Poller::Impl::find(std::uint64_t id) {
    const std::lock_guard lock(mutex_);
    const auto it = connections_.find(id);
    return it == connections_.end() ? nullptr : it->second.lock();
}

int Poller::Impl::untilNextTimer() {
    const std::lock_guard lock(mutex_);
    if (timers_.empty()) return -1;
    const auto left = timers_.begin()->first - Steady::now();
    const auto millis = std::chrono::ceil<std::chrono::milliseconds>(left).count();
    return static_cast<int>(std::clamp<std::int64_t>(millis, 0, 60'000));
}

void Poller::Impl::runTimers() {
    std::vector<std::weak_ptr<Connection>> due;
    const auto now = Steady::now();
    {
        const std::lock_guard lock(mutex_);
        while (!timers_.empty() && timers_.begin()->first <= now) {
            due.push_back(std::move(timers_.begin()->second));
            timers_.erase(timers_.begin());
        }
    }
    for (const auto& weak : due) {
        if (const auto connection = weak.lock()) connection->tick(now);
    }
}

void Poller::Impl::run(const std::stop_token& stop) {
    std::array<epoll_event, 64> events;
    while (!stop.stop_requested()) {
        const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()),
                                       untilNextTimer());
        if (count < 0 && errno != EINTR) throwErrno("epoll_wait");
        for (int i = 0; i < count; ++i) {
            const std::uint64_t id = events[static_cast<std::size_t>(i)].data.u64;
            if (id == 0) {
                eventfd_t ignored = 0;
                ::eventfd_read(wake_.get(), &ignored);
            } else if (const auto connection = find(id)) {
                connection->readable();
            }
        }
        runTimers();
    }
}

Poller::Poller() : impl_(std::make_unique<Impl>()) {}
Poller::~Poller() = default;

}  // namespace hearth::agent
