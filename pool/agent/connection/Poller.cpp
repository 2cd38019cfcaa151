#include "pool/agent/connection/Poller.h"

#include <sys/resource.h>

#include <array>
#include <cerrno>
#include <vector>

#include "base/Error.h"

namespace hearth::agent {
namespace {

/// 32 MB/s; room that is unused for kPacedBurst is lost.
constexpr std::size_t kPacedBytesPerUs = 32;
constexpr std::chrono::milliseconds kPacedBurst{50};
/// The niceness of the threads that carry tenants' connections on, too.
constexpr int kNice = 5;

}  // namespace

Poller::Poller(Priority priority) : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
    if (!epoll_) throwErrno("epoll_create1");
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = 0;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, alarm_.fd(), &event) != 0) throwErrno("epoll_ctl");
    thread_ = std::jthread([this, priority](const std::stop_token& stop) {
        // On Linux this applies to this thread only.
        if (priority == Priority::Low) ::setpriority(PRIO_PROCESS, 0, kNice);
        run(stop);
    });
}

Poller& Poller::bulk() {
    const MutexLock lock(mutex_);
    if (!bulk_) bulk_ = std::make_unique<Poller>(Priority::Low);
    return *bulk_;
}

Poller::~Poller() {
    thread_.request_stop();
    const MutexLock lock(mutex_);
    alarm_.ringIn(std::chrono::nanoseconds(0));
}

std::uint64_t Poller::add(int fd, std::weak_ptr<Polled> polled) {
    std::uint64_t id = 0;
    {
        const MutexLock lock(mutex_);
        id = next_id_++;
        polled_.emplace(id, std::move(polled));
    }
    epoll_event event{};
    event.events = EPOLLONESHOT;
    event.data.u64 = id;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
        const int error = errno;
        const MutexLock lock(mutex_);
        polled_.erase(id);
        throwErrno(error, "epoll_ctl");
    }
    return id;
}

void Poller::remove(std::uint64_t id, int fd) noexcept {
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
    const MutexLock lock(mutex_);
    polled_.erase(id);
}

void Poller::arm(std::uint64_t id, int fd, std::uint32_t events) {
    epoll_event event{};
    event.events = events | EPOLLONESHOT;
    event.data.u64 = id;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) != 0) throwErrno("epoll_ctl");
}

void Poller::disarm(std::uint64_t id, int fd) {
    // One-shot here too: a hang-up is always reported, and would be reported for ever.
    epoll_event event{};
    event.events = EPOLLONESHOT;
    event.data.u64 = id;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) != 0) throwErrno("epoll_ctl");
}

void Poller::schedule(std::weak_ptr<Polled> polled, Steady::time_point at) {
    const MutexLock lock(mutex_);
    const auto placed = timers_.emplace(at, std::move(polled));
    if (placed == timers_.begin()) alarm_.ringIn(at - Steady::now());
}

std::size_t Poller::allowPaced(std::size_t wanted, Steady::time_point now) {
    const MutexLock lock(mutex_);
    const auto passed = std::min<Steady::duration>(now - paced_at_, kPacedBurst);
    paced_at_ = now;
    const auto more = std::chrono::duration_cast<std::chrono::microseconds>(passed).count();
    const std::size_t most = kPacedBytesPerUs * std::chrono::microseconds(kPacedBurst).count();
    paced_room_ = std::min(paced_room_ + kPacedBytesPerUs * static_cast<std::size_t>(more), most);
    const std::size_t allowed = std::min(wanted, paced_room_);
    paced_room_ -= allowed;
    return allowed;
}

std::shared_ptr<Polled> Poller::find(std::uint64_t id) {
    const MutexLock lock(mutex_);
    const auto it = polled_.find(id);
    return it == polled_.end() ? nullptr : it->second.lock();
}

void Poller::runTimers() {
    std::vector<std::weak_ptr<Polled>> due;
    const auto now = Steady::now();
    {
        const MutexLock lock(mutex_);
        while (!timers_.empty() && timers_.begin()->first <= now) {
            due.push_back(std::move(timers_.begin()->second));
            timers_.erase(timers_.begin());
        }
        if (!timers_.empty()) alarm_.ringIn(timers_.begin()->first - now);
    }
    for (const auto& weak : due) {
        if (const auto polled = weak.lock()) polled->due(now);
    }
}

void Poller::run(const std::stop_token& stop) {
    std::array<epoll_event, 64> events;
    while (!stop.stop_requested()) {
        const int count =
            ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), -1);
        if (count < 0 && errno != EINTR) throwErrno("epoll_wait");
        for (int i = 0; i < count; ++i) {
            const std::uint64_t id = events[static_cast<std::size_t>(i)].data.u64;
            if (id == 0) {
                if (alarm_.rang()) runTimers();
            } else if (const auto polled = find(id)) {
                polled->ready();
            }
        }
    }
}

}  // namespace hearth::agent
