#pragma once

#include <atomic>
#include <cstddef>
#include <deque>

#include "base/Fd.h"
#include "base/Mutex.h"

namespace hearth::api {

struct Connection;

/// Connections with a whole request, on their way to the workers. Bounded. Thread-safe.
class RequestQueue {
public:
    /// At most `lingerers` wait with their connection for long.
    RequestQueue(std::size_t limit, std::size_t lingerers);

    /// False when full or closed; the connection is then still the caller's.
    bool push(Connection* connection);
    /// Waits; nullptr once closed and empty.
    Connection* pop();
    /// Refuses new requests; queued ones are still handed out.
    void close();
    /// Whether a connection waits for a worker. No lock.
    bool waiting() const { return size_.load() > 0; }

    /// Waits up to `wait_ms` for `fd` to become readable; gives up early when a connection waits
    /// and no idle worker is there to take it, when the queue is closed, and soon where enough
    /// others linger. True when readable (or hung up).
    bool linger(int fd, int wait_ms);

private:
    void kick();

    const std::size_t limit_;
    const std::size_t lingerers_;
    Fd kick_;
    Mutex mutex_;
    Condition arrived_;
    std::deque<Connection*> queue_ HEARTH_GUARDED_BY(mutex_);
    std::size_t idle_ HEARTH_GUARDED_BY(mutex_) = 0;
    std::atomic<bool> closed_{false};  ///< changed under mutex_
    std::atomic<std::size_t> size_{0};
    std::atomic<std::size_t> lingering_{0};
};

}  // namespace hearth::api
