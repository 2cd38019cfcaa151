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

/// After our last word: how long and how much a client may go on sending before we close.
constexpr milliseconds kCloseTime{1'000};
constexpr std::size_t kCloseBytes = 1U << 20U;

}  // namespace

Loop::Loop(Core& core, HeadQueue& queue, int listener)
    : core_(core),
      queue_(queue),
      listener_(listener),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      bell_(std::make_shared<Bell>()) {
    bell_->loop = this;
    if (!epoll_ || !wake_) throwErrno("epoll_create1");
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = kWakeId;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event) != 0) throwErrno("epoll_ctl");
    event.data.u64 = kListenerId;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, listener_, &event) != 0) throwErrno("epoll_ctl");
}

Loop::~Loop() {
    const std::lock_guard lock(bell_->mutex);
    bell_->loop = nullptr;
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
    std::unique_lock lock(mutex_);
    stop_asked_ = true;
    wake();
    stop_began_.wait(lock, [this] { return stop_begun_; });
}

void Loop::join() {
    {
        const std::lock_guard lock(mutex_);
        quit_asked_ = true;
    }
    wake();
    if (thread_.joinable()) thread_.join();
}

void Loop::run() {
    std::array<epoll_event, 256> events;
    while (!(quitting_ && connections_.empty())) {
        const int count = ::epoll_wait(epoll_.get(), events.data(), events.size(), waitTime());
        // What was given back comes first: an event may be about a stream that is only now ours.
        takePosted();
        for (int i = 0; i < count; ++i) {
            const epoll_event& event = events[static_cast<std::size_t>(i)];
            if (event.data.u64 == kListenerId) {
                acceptAll();
            } else if (event.data.u64 != kWakeId) {
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
    std::vector<std::uint64_t> woken;
    bool stop = false;
    {
        const std::lock_guard lock(mutex_);
        returned.swap(returned_);
        done.swap(done_);
        woken.swap(woken_);
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
    for (const std::uint64_t id : woken) {
        const auto found = connections_.find(id);
        if (found == connections_.end() || found->second->place != Place::Suspended) continue;
        Connection& connection = *found->second;
        guard(connection, [&] {
            if (connection.suspension.ready()) resume(connection);
        });
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
            startFlush(connection);
            return;
        case Connection::Next::Stream:
            connection.place = Place::Streaming;
            arm(connection, EPOLLOUT | EPOLLRDHUP | EPOLLET);
            timeout(connection, core_.clock.now());
            return;
        case Connection::Next::Suspend:
            suspend(connection);
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
        case Place::Suspended:
            close(connection);  // armed for a client that goes
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
        setDeadline(connection,
                    connection.head_at + core_.options.body_time + milliseconds(allowance));
    }
    arm(connection, EPOLLIN | EPOLLONESHOT);
}

void Loop::dispatch(Connection& connection) {
    setDeadline(connection, TimePoint::max());
    connection.place = Place::AtWorker;
    if (queue_.push(&connection)) return;  // from here on the worker's
    connection.place = Place::Reading;
    connection.exchange.reset();
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
    const auto& body = std::get<std::string>(response.body);
    Framing framing;
    framing.request_id = id;
    framing.date_line = date_.at(core_.clock.wall());
    framing.length = body.size();
    framing.keep_alive = false;
    connection.output = renderHead(response, framing) + body;
    connection.output_at = 0;
    connection.keep = false;
    connection.peer_may_send = true;
    startFlush(connection);
}

void Loop::startFlush(Connection& connection) {
    const TimePoint now = core_.clock.now();
    connection.place = Place::Flushing;
    connection.flush_until =
        now + core_.options.write_stall +
        milliseconds(connection.output.size() * 1'000 / core_.options.body_rate);
    setDeadline(connection, now + core_.options.write_stall);
    flush(connection);
}

void Loop::flush(Connection& connection) {
    const std::size_t before = connection.output_at;
    while (connection.output_at < connection.output.size()) {
        const ssize_t sent =
            ::send(connection.fd.get(), connection.output.data() + connection.output_at,
                   connection.output.size() - connection.output_at, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0 && errno == EAGAIN) {
            if (connection.output_at > before) {
                setDeadline(connection, std::min(connection.flush_until,
                                                 core_.clock.now() + core_.options.write_stall));
            }
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

void Loop::suspend(Connection& connection) {
    connection.place = Place::Suspended;
    setDeadline(connection, connection.suspension.until);
    connection.subscription = connection.suspension.subscribe([bell = bell_, id = connection.id] {
        const std::lock_guard held(bell->mutex);
        if (bell->loop == nullptr) return;
        Loop& loop = *bell->loop;
        {
            const std::lock_guard lock(loop.mutex_);
            loop.woken_.push_back(id);
        }
        loop.wake();
    });
    if (stopping_ || connection.suspension.ready()) {
        resume(connection);
    } else {
        arm(connection, EPOLLRDHUP | EPOLLONESHOT);
    }
}

void Loop::resume(Connection& connection) {
    connection.subscription.reset();
    dispatch(connection);
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
    connection.stream_place.reset();
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
    std::unique_ptr<Connection> owned = std::move(found->second);
    connections_.erase(found);
    const auto address = per_address_.find(owned->peer);
    if (address != per_address_.end() && --address->second == 0) per_address_.erase(address);
    owned->stream_place.reset();
    if (owned->stream) cutOff(owned->stream);
    owned.reset();  // who counts connections sees it go when its client does
    core_.connections.store(connections_.size());
}

}  // namespace hearth::api
