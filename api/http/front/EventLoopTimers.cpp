#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>

#include "api/http/front/EventLoop.h"
#include "base/Error.h"

// The deadlines of the loop: each connection has one timer that checks its deadline when it fires,
// so that moving a deadline later costs nothing.
namespace hearth::api {
namespace {

using std::chrono::milliseconds;

/// At the stop, producers have this long to send a last message before their streams are finished.
constexpr milliseconds kStreamGrace{250};
/// How often connections that come back from workers are cut after the drain time.
constexpr milliseconds kCutAgain{50};

}  // namespace

void EventLoop::setDeadline(Connection& connection, TimePoint deadline) {
    connection.deadline = deadline;
    if (deadline >= connection.timer_at) return;  // the timer that is set will check again
    connection.timer_at = deadline;
    timers_.emplace(deadline, connection.id);
}

void EventLoop::fireTimers() {
    const TimePoint now = core_.clock.now();
    while (!timers_.empty() && timers_.top().first <= now) {
        const Timer timer = timers_.top();
        timers_.pop();
        const auto found = connections_.find(timer.second);
        if (found == connections_.end()) continue;
        Connection& connection = *found->second;
        if (connection.timer_at != timer.first) continue;  // an earlier one was set instead
        connection.timer_at = TimePoint::max();
        if (connection.deadline > now) {
            if (connection.deadline != TimePoint::max()) {
                setDeadline(connection, connection.deadline);
            }
            continue;
        }
        guard(connection, [&] { timeout(connection, now); });
    }
    if (now >= accept_again_) {
        accept_again_ = TimePoint::max();
        epoll_event event{};
        event.events = EPOLLIN;
        event.data.u64 = kListenerId;
        if (accepting_) ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, listener_, &event);
    }
    if (now >= cut_at_) cutAll();
}

void EventLoop::timeout(Connection& connection, TimePoint now) {
    if (connection.place == Place::Streaming) {
        if (!connection.right.holds(core_.clock)) {
            endLapsed(connection);
            return;
        }
        if (stopping_) connection.stream->finish();
        TimePoint again = now;
        if (connection.stream->tick(now, again) == DetachedStream::State::Broken) {
            endStream(connection, false);
        } else {
            if (stopping_) again = std::min(again, now + kStreamGrace);
            again = std::min(again, connection.right.until(core_.clock));
            setDeadline(connection, again);
        }
        return;
    }
    if (connection.place == Place::Suspended) {
        if (now < connection.suspension.until && connection.right.holds(core_.clock)) {
            setDeadline(connection,
                        std::min(connection.suspension.until, connection.right.until(core_.clock)));
        } else {
            resume(connection);  // is refused if its right has ended
        }
        return;
    }
    if (connection.place != Place::Reading || !connection.receiving) {
        if (connection.place == Place::Reading && !connection.served) {
            core_.metrics.httpRefused("first_byte_timeout");
        }
        close(connection);
        return;
    }
    HttpProblem why;
    why.status = 408;
    why.error_code = "REQUEST_TIMEOUT";
    why.title = "The request came too slowly";
    why.message = connection.head_done ? "the request body came too slowly"
                                       : "the request head came too slowly";
    why.retryable = true;
    reject(connection, why, connection.head_done ? "body_timeout" : "head_timeout");
}

void EventLoop::arm(Connection& connection, std::uint32_t events) {
    epoll_event event{};
    event.events = events;
    event.data.u64 = connection.id;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, connection.fd.get(), &event) != 0) {
        throwErrno("epoll_ctl");
    }
}

void EventLoop::stopReading() {
    stopping_ = true;
    const TimePoint now = core_.clock.now();
    cut_at_ = now + core_.options.drain;
    if (accepting_ && accept_again_ == TimePoint::max()) {
        ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, listener_, nullptr);
    }
    accepting_ = false;
    std::vector<Connection*> idle;
    std::vector<Connection*> suspended;
    for (const auto& [id, connection] : connections_) {
        if (connection->place == Place::Reading) idle.push_back(connection.get());
        if (connection->place == Place::Suspended) suspended.push_back(connection.get());
        if (connection->place == Place::Streaming) {
            setDeadline(*connection, std::min(now + kStreamGrace, cut_at_));
        }
    }
    for (Connection* connection : idle) close(*connection);
    // They are answered with the present state.
    for (Connection* connection : suspended) {
        guard(*connection, [&] { resume(*connection); });
    }
    const MutexLock lock(mutex_);
    stop_begun_ = true;
    stop_began_.notifyAll();
}

void EventLoop::cutAll() {
    cut_at_ = TimePoint::max();
    std::vector<Connection*> rest;
    for (const auto& [id, connection] : connections_) {
        if (connection->place == Place::AtWorker) {
            ::shutdown(connection->fd.get(), SHUT_RDWR);  // its worker then gives it back
        } else {
            rest.push_back(connection.get());
        }
    }
    for (Connection* connection : rest) close(*connection);
    // A connection that a worker still returns is cut soon.
    if (!connections_.empty()) cut_at_ = core_.clock.now() + kCutAgain;
}

}  // namespace hearth::api
