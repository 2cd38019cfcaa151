#pragma once

#include <sys/epoll.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>
#include <unordered_map>

#include "base/Alarm.h"
#include "base/Fd.h"
#include "base/Mutex.h"

namespace hearth::agent {

/// The clock of timeouts towards agents: real time, whatever clock decides about workspaces.
using Steady = std::chrono::steady_clock;

/// Something with a descriptor that the Poller watches. Called on the Poller's thread.
class Polled {
public:
    virtual ~Polled() = default;
    /// An armed event has come, or an end or an error.
    virtual void ready() = 0;
    /// A time given to Poller::schedule() has come.
    virtual void due(Steady::time_point /*now*/) {}
};

/// The one thread that reads every agent connection on which nobody waits. Wakes a connection when
/// an event comes that it is armed for, and at times it asked for. Every descriptor is registered
/// once and one-shot, so a connection that some thread reads causes no wake-up here. Outlives all
/// clients. Thread-safe.
class Poller {
public:
    enum class Priority { Normal, Low };
    explicit Poller(Priority priority = Priority::Normal);
    ~Poller();
    Poller(const Poller&) = delete;
    Poller& operator=(const Poller&) = delete;

    /// Returns another Poller, of low priority, whose thread starts on first use: for bulk data of
    /// tenants, which must not delay the executions of others.
    Poller& bulk();

    /// Registers a descriptor without arming it; returns the id for the calls below.
    std::uint64_t add(int fd, std::weak_ptr<Polled> polled);
    /// Call it before the descriptor is closed.
    void remove(std::uint64_t id, int fd) noexcept;
    /// Calls Polled::ready() once, when one of `events` has come: by default, something to read.
    void arm(std::uint64_t id, int fd, std::uint32_t events = EPOLLIN | EPOLLRDHUP);
    void disarm(std::uint64_t id, int fd);
    /// Calls Polled::due() at `at`.
    void schedule(std::weak_ptr<Polled> polled, Steady::time_point at);
    /// Returns how many of these bytes paced executions may send now, beyond their limits: all
    /// share 32 MB/s, because this one thread reads their output and passes most of it on.
    std::size_t allowPaced(std::size_t wanted, Steady::time_point now);

private:
    void run(const std::stop_token& stop);
    void runTimers();
    std::shared_ptr<Polled> find(std::uint64_t id);

    Fd epoll_;
    Alarm alarm_;  ///< set while mutex_ is held
    Mutex mutex_;
    std::uint64_t next_id_ HEARTH_GUARDED_BY(mutex_) = 1;
    std::unordered_map<std::uint64_t, std::weak_ptr<Polled>> polled_ HEARTH_GUARDED_BY(mutex_);
    std::multimap<Steady::time_point, std::weak_ptr<Polled>> timers_ HEARTH_GUARDED_BY(mutex_);
    std::size_t paced_room_ HEARTH_GUARDED_BY(mutex_) = 0;
    Steady::time_point paced_at_ HEARTH_GUARDED_BY(mutex_){};
    std::unique_ptr<Poller> bulk_ HEARTH_GUARDED_BY(mutex_);
    std::jthread thread_;
};

}  // namespace hearth::agent
