#include "api/http/Loop.h"

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/Error.h"

namespace hearth::api {
namespace {

using std::chrono::milliseconds;

constexpr std::uint64_t kListener = 0;
constexpr std::uint64_t kWake = 1;
/// After our last word: how long and how much a client may go on sending before we close.
constexpr milliseconds kCloseTime{1'000};
constexpr std::size_t kCloseBytes = 1U << 20U;
/// At the end producers get this long to say a last word before their streams are finished.
constexpr milliseconds kStreamGrace{250};

}  // namespace

Loop::Loop(Core& core, HeadQueue& queue, int listener)
    : core_(core),
      queue_(queue),
      listener_(listener),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!epoll_ || !wake_) throwErrno("epoll_create1");
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = kWake;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event) != 0) throwErrno("epoll_ctl");
    event.data.u64 = kListener;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, listener_, &event) != 0) throwErrno("epoll_ctl");
}

void Loop::start() {
    thread_ = std::jthread([this] {
        ::pthread_setname_np(::pthread_self(), (core_.options.name.substr(0, 9) + "-loop").c_str());
        run();
    });
}

void Loop::wake() {
    const std::uint64_t one = 1;
    // Fails only when the counter is full, and then the loop is awake anyway.
    static_cast<void>(::write(wake_.get(), &one, sizeof(one)) == sizeof(one));
}

void Loop::giveBack(Connection& connection, Connection::Next next) {
    connection.next = next;
    bool first = false;
    {
        const std::lock_guard lock(mutex_);
        first = returned_.empty();
        returned_.push_back(&connection);
    }
    if (first) wake();
}

void Loop::streamDone(std::uint64_t connection) {
    {
        const std::lock_guard lock(mutex_);
        done_.push_back(connection);
    }
    wake();
}

void Loop::beginStop() {
    {
        const std::lock_guard lock(mutex_);
        stop_asked_ = true;
    }
    wake();
}

void Loop::join() {
    {
        const std::lock_guard lock(mutex_);
        quit_asked_ = true;
    }
    wake();
    if (thread_.joinable()) thread_.join();
}

template <typename Work>
void Loop::guard(Connection& connection, Work work) {
    try {
        work();
    } catch (const std::exception& e) {
        core_.log.error("http.connection_failed", {{"peer", connection.peer}, {"error", e.what()}});
        close(connection);
    }
}

void Loop::run() {
    std::array<epoll_event, 256> events;
    while (!(quitting_ && connections_.empty())) {
        const int count = ::epoll_wait(epoll_.get(), events.data(), events.size(), waitTime());
        // What was given back comes first: an event may be about a stream that is only now ours.
        takePosted();
        for (int i = 0; i < count; ++i) {
            const epoll_event& event = events[static_cast<std::size_t>(i)];
            if (event.data.u64 == kListener) {
                acceptAll();
            } else if (event.data.u64 != kWake) {
                const auto found = connections_.find(event.data.u64);
                if (found == connections_.end()) continue;  // closed earlier in this round
                Connection& connection = *found->second;
                guard(connection, [&] { handle(connection, event.events); });
            }
        }
        fireTimers();
    }
}

int Loop::waitTime() {
    TimePoint next = std::min(accept_again_, cut_at_);
    if (!timers_.empty()) next = std::min(next, timers_.top().first);
    if (next == TimePoint::max()) return -1;
    const auto wait = std::chrono::ceil<milliseconds>(next - core_.clock.now()).count();
    return static_cast<int>(std::clamp<std::int64_t>(wait, 0, 60'000));
}

void Loop::takePosted() {
    std::uint64_t wakes = 0;
    static_cast<void>(::read(wake_.get(), &wakes, sizeof(wakes)));
    std::vector<Connection*> returned;
    std::vector<std::uint64_t> done;
    bool stop = false;
    {
        const std::lock_guard lock(mutex_);
        returned.swap(returned_);
        done.swap(done_);
        stop = stop_asked_;
        quitting_ = quit_asked_;
    }
    for (Connection* connection : returned) {
        guard(*connection, [&] { takeBack(*connection); });
    }
    for (const std::uint64_t id : done) {
        const auto found = connections_.find(id);
        if (found == connections_.end() || found->second->place != Place::Streaming) continue;
        guard(*found->second, [&] { writeStream(*found->second); });
    }
    if (stop && !stopping_) stopReading();
}

void Loop::takeBack(Connection& connection) {
    connection.served = true;
    switch (connection.next) {
        case Connection::Next::Park:
            park(connection);
            return;
        case Connection::Next::Flush:
            connection.place = Place::Flushing;
            setDeadline(connection,
                        core_.clock.now() + core_.options.write_stall +
                            milliseconds(connection.output.size() * 1'000 /
                                         core_.options.body_rate));
            flush(connection);
            return;
        case Connection::Next::Stream:
            connection.place = Place::Streaming;
            arm(connection, EPOLLOUT | EPOLLRDHUP | EPOLLET);
            timeout(connection, core_.clock.now());
            return;
        case Connection::Next::Close:
            sayGoodbye(connection);
            return;
        case Connection::Next::Abort:
            close(connection);
            return;
    }
}

void Loop::handle(Connection& connection, std::uint32_t events) {
    switch (connection.place) {
        case Place::Reading:
            readable(connection);
            return;
        case Place::Flushing:
            flush(connection);
            return;
        case Place::Streaming:
            if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) {
                endStream(connection, false);
            } else {
                writeStream(connection);
            }
            return;
        case Place::Closing:
            discard(connection);
            return;
        case Place::AtWorker:
            return;
    }
}

void Loop::park(Connection& connection) {
    connection.place = Place::Reading;
    connection.receiving = false;
    if (stopping_) {
        close(connection);
        return;
    }
    setDeadline(connection, core_.clock.now() + core_.options.keep_alive);
    advance(connection);
}

void Loop::readable(Connection& connection) {
    const Connection::Received got = connection.receive();
    if (got == Connection::Received::End) {
        close(connection);
        return;
    }
    advance(connection);
}

void Loop::advance(Connection& connection) {
    switch (connection.check(core_.options, core_.clock)) {
        case Connection::Readiness::Ready:
            dispatch(connection);
            return;
        case Connection::Readiness::Bad: {
            HttpProblem why;
            why.error_code = "INVALID_ARGUMENT";
            why.title = "The request is not valid HTTP";
            why.message = connection.wrong;
            reject(connection, why, "bad_request");
            return;
        }
        case Connection::Readiness::Waiting:
            break;
    }
    const bool partial = connection.head_done || !connection.input.empty();
    if (partial && !connection.receiving) {
        connection.receiving = true;
        connection.receiving_since = core_.clock.now();
        setDeadline(connection, connection.receiving_since + core_.options.head_time);
    }
    if (connection.head_done) {
        const std::uint64_t allowance =
            connection.head.content_length * 1'000 / core_.options.body_rate;
        setDeadline(connection, connection.head_at + core_.options.body_time +
                                    milliseconds(allowance));
    }
    arm(connection, EPOLLIN | EPOLLONESHOT);
}

void Loop::dispatch(Connection& connection) {
    setDeadline(connection, TimePoint::max());
    connection.place = Place::AtWorker;
    if (queue_.push(&connection)) return;  // from here on the worker's
    connection.place = Place::Reading;
    HttpProblem why;
    why.status = 503;
    why.error_code = "UNAVAILABLE";
    why.title = "Not available now";
    why.message = "the server has more requests than it can take";
    why.retryable = true;
    why.retry_after = std::chrono::seconds(1);
    reject(connection, why, "queue_full");
}

void Loop::reject(Connection& connection, const HttpProblem& why, std::string_view reason) {
    core_.metrics.httpRefused(reason);
    core_.metrics.http("other", "_OTHER", why.status, 0);
    const std::string id = ids_.next("req_");
    const Response response = problem(why, {"", id, ""});
    const std::string& body = std::get<std::string>(response.body);
    Framing framing;
    framing.request_id = id;
    framing.date_line = date_.at(core_.clock.wall());
    framing.length = body.size();
    framing.keep_alive = false;
    connection.output = renderHead(response, framing) + body;
    connection.output_at = 0;
    connection.keep = false;
    connection.peer_may_send = true;
    connection.place = Place::Flushing;
    setDeadline(connection, core_.clock.now() + core_.options.write_stall);
    flush(connection);
}

void Loop::flush(Connection& connection) {
    while (connection.output_at < connection.output.size()) {
        const ssize_t sent =
            ::send(connection.fd.get(), connection.output.data() + connection.output_at,
                   connection.output.size() - connection.output_at, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0 && errno == EAGAIN) {
            arm(connection, EPOLLOUT | EPOLLONESHOT);
            return;
        }
        if (sent < 0) {
            close(connection);
            return;
        }
        connection.output_at += static_cast<std::size_t>(sent);
    }
    connection.output = {};
    connection.output_at = 0;
    if (connection.keep) {
        park(connection);
    } else {
        sayGoodbye(connection);
    }
}

void Loop::writeStream(Connection& connection) {
    const DetachedStream::State state = connection.stream->flush();
    if (state != DetachedStream::State::Open) {
        endStream(connection, state == DetachedStream::State::Done);
    }
}

void Loop::endStream(Connection& connection, bool clean) {
    const std::shared_ptr<DetachedStream> stream = std::move(connection.stream);
    connection.stream.reset();
    cutOff(stream);
    if (!clean) {
        close(connection);
    } else if (connection.keep) {
        park(connection);
    } else {
        sayGoodbye(connection);
    }
}

void Loop::cutOff(const std::shared_ptr<DetachedStream>& stream) {
    core_.streams.fetch_sub(1);
    try {
        stream->close();
    } catch (const std::exception& e) {
        core_.log.error("http.stream_callback_failed", {{"error", e.what()}});
    }
}

void Loop::sayGoodbye(Connection& connection) {
    if (!connection.peer_may_send) {
        close(connection);
        return;
    }
    ::shutdown(connection.fd.get(), SHUT_WR);
    connection.place = Place::Closing;
    setDeadline(connection, core_.clock.now() + kCloseTime);
    discard(connection);
}

void Loop::discard(Connection& connection) {
    std::array<char, 16U << 10U> scratch;
    while (connection.discarded < kCloseBytes) {
        const ssize_t got = ::recv(connection.fd.get(), scratch.data(), scratch.size(), 0);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && errno == EAGAIN) {
            arm(connection, EPOLLIN | EPOLLONESHOT);
            return;
        }
        if (got <= 0) break;
        connection.discarded += static_cast<std::size_t>(got);
    }
    close(connection);
}

void Loop::close(Connection& connection) {
    const auto found = connections_.find(connection.id);
    if (found == connections_.end()) return;
    const std::unique_ptr<Connection> owned = std::move(found->second);
    connections_.erase(found);
    core_.connections.store(connections_.size());
    const auto address = per_address_.find(owned->peer);
    if (address != per_address_.end() && --address->second == 0) per_address_.erase(address);
    if (owned->stream) cutOff(owned->stream);
}

void Loop::setDeadline(Connection& connection, TimePoint deadline) {
    connection.deadline = deadline;
    if (deadline >= connection.timer_at) return;  // the timer that is set will look again
    connection.timer_at = deadline;
    timers_.emplace(deadline, connection.id);
}

void Loop::fireTimers() {
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
        event.data.u64 = kListener;
        if (accepting_) ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, listener_, &event);
    }
    if (now >= cut_at_) cutAll();
}

void Loop::timeout(Connection& connection, TimePoint now) {
    if (connection.place == Place::Streaming) {
        if (stopping_) connection.stream->finish();
        TimePoint again = now;
        if (connection.stream->tick(now, again) == DetachedStream::State::Broken) {
            endStream(connection, false);
        } else {
            if (stopping_) again = std::min(again, now + kStreamGrace);
            setDeadline(connection, again);
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

void Loop::arm(Connection& connection, std::uint32_t events) {
    epoll_event event{};
    event.events = events;
    event.data.u64 = connection.id;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, connection.fd.get(), &event) != 0) {
        throwErrno("epoll_ctl");
    }
}

void Loop::stopReading() {
    stopping_ = true;
    const TimePoint now = core_.clock.now();
    cut_at_ = now + core_.options.drain;
    if (accepting_ && accept_again_ == TimePoint::max()) {
        ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, listener_, nullptr);
    }
    accepting_ = false;
    std::vector<Connection*> idle;
    for (const auto& [id, connection] : connections_) {
        if (connection->place == Place::Reading) idle.push_back(connection.get());
        if (connection->place == Place::Streaming) {
            setDeadline(*connection, std::min(now + kStreamGrace, cut_at_));
        }
    }
    for (Connection* connection : idle) close(*connection);
}

void Loop::cutAll() {
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
    // What workers still give back is cut as soon as it is here.
    if (!connections_.empty()) cut_at_ = core_.clock.now() + milliseconds(50);
}

}  // namespace hearth::api
