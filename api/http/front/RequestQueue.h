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
    /// At most `lingerers` threads wait long with their connection.
    RequestQueue(std::size_t limit, std::size_t lingerers);

    /// False if full or closed; then the connection is still the caller's.
    bool push(Connection* connection);
    /// Waits; nullptr if closed and empty.
    Connection* pop();
    /// Refuses new requests; queued ones are still handed out.
    void close();
    /// True if a connection waits for a worker. Takes no lock.
    bool waiting() const { return size_.load() > 0; }

    /// Waits up to `wait_ms` for `fd` to become readable; gives up early if a connection waits and
    /// no idle worker can take it, or if the queue is closed, and soon if enough others linger.
    /// True if readable (or hung up).
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
