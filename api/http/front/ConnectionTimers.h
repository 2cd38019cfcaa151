#pragma once

#include <queue>
#include <utility>
#include <vector>

#include "api/http/front/ConnectionTable.h"

namespace hearth::api {

/// The deadlines of an event loop's connections: each connection has one timer that checks its
/// deadline when it fires, so that moving a deadline later costs nothing.
class ConnectionTimers {
public:
    void set(Connection& connection, TimePoint deadline) {
        connection.deadline = deadline;
        if (deadline >= connection.timer_at) return;  // the timer that is set will check again
        connection.timer_at = deadline;
        timers_.emplace(deadline, connection.id);
    }

    /// Returns when due() must be called; TimePoint::max() for never.
    TimePoint next() const { return timers_.empty() ? TimePoint::max() : timers_.top().first; }

    /// Returns a connection whose deadline has passed, each once; null if there is no other.
    Connection* due(TimePoint now, const ConnectionTable& connections) {
        while (next() <= now) {
            const auto [at, id] = timers_.top();
            timers_.pop();
            Connection* const connection = connections.find(id);
            // It is closed, or an earlier one was set instead.
            if (connection == nullptr || connection->timer_at != at) continue;
            connection->timer_at = TimePoint::max();
            if (connection->deadline <= now) return connection;
            if (connection->deadline != TimePoint::max()) set(*connection, connection->deadline);
        }
        return nullptr;
    }

private:
    using Timer = std::pair<TimePoint, std::uint64_t>;
    std::priority_queue<Timer, std::vector<Timer>, std::greater<>> timers_;
};

}  // namespace hearth::api
