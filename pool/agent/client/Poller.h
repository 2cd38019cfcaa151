#pragma once

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
#include "pool/agent/client/AgentClient.h"

namespace hearth::agent {

/// Time for timeouts towards agents; real time, whatever clock decides about workspaces.
using Steady = std::chrono::steady_clock;

/// Wakes connections: on bytes while they are armed, and at times they asked for. Every descriptor
/// is registered once and one-shot, so a connection that some thread reads causes no wake-up here.
struct Poller::Impl {
    Impl();
    ~Impl();
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;

    /// Registers a silent descriptor; gives the id for the calls below.
    std::uint64_t add(int fd, std::weak_ptr<AgentConnection> connection);
    /// Before the descriptor is closed.
    void remove(std::uint64_t id, int fd) noexcept;
    /// AgentConnection::readable() once, when there is something to read.
    void arm(std::uint64_t id, int fd);
    void disarm(std::uint64_t id, int fd);
    /// AgentConnection::tick() at `at`.
    void schedule(std::weak_ptr<AgentConnection> connection, Steady::time_point at);
    /// How many of these bytes paced executions may send now, beyond their limits: all share
    /// 32 MB/s, because what they send is read, and mostly passed on, on this one thread.
    std::size_t allowPaced(std::size_t wanted, Steady::time_point now);

private:
    void run(const std::stop_token& stop);
    void runTimers();
    std::shared_ptr<AgentConnection> find(std::uint64_t id);

    Fd epoll_;
    Alarm alarm_;  ///< set while mutex_ is held
    Mutex mutex_;
    std::uint64_t next_id_ HEARTH_GUARDED_BY(mutex_) = 1;
    std::unordered_map<std::uint64_t, std::weak_ptr<AgentConnection>> connections_
        HEARTH_GUARDED_BY(mutex_);
    std::multimap<Steady::time_point, std::weak_ptr<AgentConnection>> timers_
        HEARTH_GUARDED_BY(mutex_);
    std::size_t paced_room_ HEARTH_GUARDED_BY(mutex_) = 0;
    Steady::time_point paced_at_ HEARTH_GUARDED_BY(mutex_){};
    std::jthread thread_;
};

}  // namespace hearth::agent
