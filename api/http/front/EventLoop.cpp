#include "api/http/front/EventLoop.h"

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/Error.h"

namespace hearth::api {
namespace {

constexpr int kBadRequest = 400;

/// The status for a head that is refused: 414 if its first line is too long, 431 if the head is
/// too large or has too many fields.
int statusOfFault(std::string_view bytes, const HeadLimits& limits) {
    const std::size_t end = std::min(bytes.find("\r\n\r\n"), bytes.size());
    if (std::min(bytes.find('\n'), bytes.size()) > limits.line + 1) return 414;
    const std::string_view lines = bytes.substr(0, end);
    const auto fields = static_cast<std::size_t>(std::count(lines.begin(), lines.end(), '\n'));
    return end + 4 > limits.bytes || fields > limits.fields ? 431 : kBadRequest;
}

using std::chrono::milliseconds;

/// After the last byte of an answer the loop still reads the client's bytes, because closing at
/// once could reset the connection before the client has read the answer. Limits: the longest
/// pause, the time in total, and the bytes in one turn of the loop.
constexpr milliseconds kClosePause{3'000};
constexpr milliseconds kCloseTime{30'000};
constexpr std::size_t kDiscardAtOnce = 1U << 20U;
constexpr std::size_t kCopied = 64U << 10U;
constexpr int kDiscardsInTurn = 16;

constexpr milliseconds kAcceptPause{100};
constexpr int kAcceptsAtOnce = 64;
/// Lines per second in the access log for clients that were refused before their request.
constexpr int kToldRefusals = 50;

/// At the stop, producers have this long to send a last message before their streams are finished.
constexpr milliseconds kStreamGrace{250};
/// How often connections that come back from workers are cut after the drain time.
constexpr milliseconds kCutAgain{50};

}  // namespace

EventLoop::EventLoop(FrontContext& core, RequestQueue& queue, int listener)
    : core_(core),
      queue_(queue),
      listener_(listener),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!epoll_ || !wake_) throwErrno("epoll_create1");
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = kWakeId;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event) != 0) throwErrno("epoll_ctl");
    event.data.u64 = kListenerId;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, listener_, &event) != 0) throwErrno("epoll_ctl");
}

void EventLoop::start() {
    thread_ = std::jthread([this] {
        ::pthread_setname_np(::pthread_self(), (core_.options.name.substr(0, 9) + "-loop").c_str());
        run();
    });
}

void EventLoop::wake() {
    const std::uint64_t one = 1;
    // Fails only if the counter is full, and then the loop is awake anyway.
    static_cast<void>(::write(wake_.get(), &one, sizeof(one)) == sizeof(one));
}

void EventLoop::giveBack(Connection& connection, Connection::Next next) {
    connection.next = next;
    bool first = false;
    {
        const MutexLock lock(mutex_);
        first = returned_.empty();
        returned_.push_back(&connection);
    }
    if (first) wake();
}

void EventLoop::streamDone(std::uint64_t connection) {
    {
        const MutexLock lock(mutex_);
        done_.push_back(connection);
    }
    wake();
}

void EventLoop::endNews(std::uint64_t connection) {
    {
        const MutexLock lock(mutex_);
        to_end_.push_back(connection);
    }
    wake();
}

void EventLoop::beginStop() {
    const MutexLock lock(mutex_);
    stop_asked_ = true;
    wake();
    stop_began_.wait(mutex_, [this]() HEARTH_REQUIRES(mutex_) { return stop_begun_; });
}

void EventLoop::join() {
    {
        const MutexLock lock(mutex_);
        quit_asked_ = true;
    }
    wake();
    if (thread_.joinable()) thread_.join();
}

void EventLoop::run() {
    std::array<epoll_event, 256> events;
    while (!quitting_ || connections_.size() > 0) {
        const int count = ::epoll_wait(epoll_.get(), events.data(), events.size(), waitTime());
        // Returned connections come first: an event may concern a stream that has just come back.
        takePosted();
        for (int i = 0; i < count; ++i) {
            const epoll_event& event = events[static_cast<std::size_t>(i)];
            if (event.data.u64 == kListenerId) {
                acceptAll();
            } else if (event.data.u64 != kWakeId) {
                Connection* const connection = connections_.find(event.data.u64);
                if (connection == nullptr) continue;  // closed earlier in this round
                guard(*connection, [&] { handle(*connection, event.events); });
            }
        }
        fireTimers();
    }
}

int EventLoop::waitTime() {
    const TimePoint next = std::min({accept_again_, cut_at_, timers_.next()});
    if (next == TimePoint::max()) return -1;
    const auto wait = std::chrono::ceil<milliseconds>(next - core_.clock.now()).count();
    return static_cast<int>(std::clamp<std::int64_t>(wait, 0, 60'000));
}

void EventLoop::takePosted() {
    std::uint64_t wakes = 0;
    static_cast<void>(::read(wake_.get(), &wakes, sizeof(wakes)));
    std::vector<Connection*> returned;
    std::vector<std::uint64_t> done;
    std::vector<std::uint64_t> woken;
    std::vector<std::uint64_t> to_end;
    std::vector<std::uint64_t> lapsed;
    bool stop = false;
    {
        const MutexLock lock(mutex_);
        returned.swap(returned_);
        done.swap(done_);
        woken.swap(woken_);
        to_end.swap(to_end_);
        lapsed.swap(lapsed_);
        stop = stop_asked_;
        quitting_ = quit_asked_;
    }
    for (Connection* connection : returned) {
        guard(*connection, [&] { takeBack(*connection); });
    }
    for (const std::uint64_t id : done) {
        Connection* const connection = connections_.find(id);
        if (connection == nullptr || connection->place != Place::Streaming) continue;
        guard(*connection, [&] { writeStream(*connection); });
    }
    for (const std::uint64_t id : woken) {
        Connection* const connection = connections_.find(id);
        if (connection == nullptr || connection->place != Place::Suspended) continue;
        guard(*connection, [&] {
            if (connection->suspension.ready()) resume(*connection);
        });
    }
    for (const std::uint64_t id : to_end) {
        Connection* const connection = connections_.find(id);
        if (connection == nullptr || connection->place != Place::Streaming) continue;
        guard(*connection, [&] { giveUp(*connection); });
    }
    for (const std::uint64_t id : lapsed) {
        Connection* const connection = connections_.find(id);
        if (connection == nullptr) continue;
        const Place place = connection->place;
        if (place != Place::Streaming && place != Place::Suspended) continue;
        guard(*connection, [&] { timeout(*connection, core_.clock.now()); });
    }
    if (stop && !stopping_) stopReading();
}

void EventLoop::takeBack(Connection& connection) {
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
            connections_.uncount(connection);
            arm(connection, EPOLLOUT | EPOLLRDHUP | EPOLLET);
            watchRight(connection);
            if (connection.news_place && connection.news_place->given_up) {  // already
                timers_.set(connection, core_.clock.now() + core_.options.write_stall);
                giveUp(connection);
            } else {
                timeout(connection, core_.clock.now());
            }
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

void EventLoop::handle(Connection& connection, std::uint32_t events) {
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
            close(connection);  // epoll watches it only for a client that leaves
            return;
        case Place::Closing:
            discard(connection);
            return;
        case Place::AtWorker:
            return;
    }
}

void EventLoop::acceptAll() {
    for (int i = 0; i < kAcceptsAtOnce && accepting_; ++i) {
        sockaddr_storage address{};
        socklen_t size = sizeof(address);
        Fd fd(::accept4(listener_, reinterpret_cast<sockaddr*>(&address), &size,
                        SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (!fd) {
            if (errno == EAGAIN) return;
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
                pauseAccepting();
                return;
            }
            continue;  // that client has left again
        }
        try {
            admit(std::move(fd), peerOf(address));
        } catch (const std::system_error& e) {
            core_.log.error("http.accept_failed", {{"error", e.what()}});
            return pauseAccepting();  // there is no descriptor, or no memory, for it
        } catch (const std::exception& e) {
            core_.log.error("http.accept_failed", {{"error", e.what()}});
        }
    }
}

void EventLoop::admit(Fd fd, Peer peer) {
    if (connections_.size() >= core_.options.connections && !shed(connections_.leastOfAll())) {
        return refuse(std::move(fd), peer, "connections");
    }
    if (connections_.countOf(peer.counted_as) >= core_.options.connections_per_address &&
        !core_.proxies.trusts(peer.text) && !shed(connections_.leastOf(peer.counted_as))) {
        return refuse(std::move(fd), peer, "connections_per_address");
    }
    auto connection = std::make_unique<Connection>();
    connection->id = next_id_++;
    connection->fd = core_.tls ? core_.tls->take(std::move(fd)) : std::move(fd);
    connection->peer = std::move(peer.text);
    connection->counted_as = std::move(peer.counted_as);
    connection->loopback = peer.loopback;
    connection->accepted_at = core_.clock.now();
    epoll_event event{};
    event.events = EPOLLIN | EPOLLONESHOT;
    event.data.u64 = connection->id;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, connection->fd.get(), &event) != 0) {
        throwErrno("epoll_ctl");
    }
    Connection& added = connections_.add(std::move(connection));
    core_.connections.store(connections_.size());
    timers_.set(added, core_.clock.now() + core_.options.first_byte);
}

bool EventLoop::shed(Connection* connection) {
    if (connection == nullptr) return false;
    core_.metrics.httpRefused("shed_idle");
    close(*connection);
    return true;
}

void EventLoop::refuse(Fd fd, const Peer& peer, std::string_view reason) {
    core_.metrics.httpRefused(reason);
    AccessEntry entry;
    entry.client = peer.text;
    entry.started_at = core_.clock.now();
    // A TLS client would not understand it.
    if (!core_.tls) {
        constexpr std::string_view kBusy =
            "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\n"
            "Connection: close\r\n\r\n";
        // Only a courtesy: it may get lost.
        const ssize_t sent =
            ::send(fd.get(), kBusy.data(), kBusy.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        ::shutdown(fd.get(), SHUT_WR);
        entry.status = 503;
        entry.bytes_out = sent > 0 ? static_cast<std::uint64_t>(sent) : 0;
    }
    entry.whole = entry.bytes_out > 0;
    if (core_.options.access != nullptr && mayTellRefusal()) core_.options.access->record(entry);
}

bool EventLoop::mayTellRefusal() {
    const TimePoint now = core_.clock.now();
    if (now - refusals_since_ >= std::chrono::seconds(1)) {
        refusals_since_ = now;
        refusals_ = 0;
    }
    return ++refusals_ <= kToldRefusals;
}

void EventLoop::pauseAccepting() {
    core_.metrics.httpRefused("descriptors");
    core_.log.warn("http.accept_paused", {{"listener", core_.options.name}});
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, listener_, nullptr);
    accept_again_ = core_.clock.now() + kAcceptPause;
}

void EventLoop::park(Connection& connection) {
    connection.place = Place::Reading;
    connection.receiving = false;
    connections_.count(connection);
    const bool crowded = *connection.among > core_.options.connections_per_address &&
                         !core_.proxies.trusts(connection.peer);
    if (stopping_ || crowded) {
        close(connection);
        return;
    }
    timers_.set(connection, core_.clock.now() + core_.options.keep_alive);
    advance(connection);
}

void EventLoop::readable(Connection& connection) {
    const Connection::Received got = connection.receive();
    if (got == Connection::Received::End) {
        close(connection);
        return;
    }
    advance(connection);
}

void EventLoop::advance(Connection& connection) {
    switch (connection.check(core_.options, core_.clock)) {
        case Connection::Readiness::Ready:
            dispatch(connection);
            return;
        case Connection::Readiness::Bad: {
            HttpProblem why;
            why.error_code = "INVALID_ARGUMENT";
            why.title = "The request is not valid HTTP";
            why.message = connection.wrong;
            why.status = statusOfFault(connection.input.view(), core_.options.head);
            if (why.status != kBadRequest) {
                why.error_code = errorCodeName(ErrorCode::PayloadTooLarge);
                why.title = "The request head is too large";
            }
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
        timers_.set(connection, connection.receiving_since + core_.options.head_time);
    }
    if (connection.head_done) {
        const std::uint64_t allowance =
            connection.head.content_length * 1'000 / core_.options.body_rate;
        timers_.set(connection,
                    connection.head_at + core_.options.body_time + milliseconds(allowance));
    }
    arm(connection, EPOLLIN | EPOLLONESHOT);
}

void EventLoop::dispatch(Connection& connection) {
    timers_.set(connection, TimePoint::max());
    connection.place = Place::AtWorker;
    if (queue_.push(&connection)) return;  // from here on it is the worker's
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

void EventLoop::reject(Connection& connection, const HttpProblem& why, std::string_view reason) {
    core_.metrics.httpRefused(reason);
    core_.metrics.http("other", "_OTHER", why.status, 0);
    const std::string id = ids_.next("req_");
    if (core_.options.access != nullptr && (connection.head_done || mayTellRefusal())) {
        connection.access = std::make_unique<AccessEntry>(unanswered(connection));
        connection.access->request_id = id;
        connection.access->status = why.status;
        connection.access->error_code = why.error_code;
    }
    connection.exchange.reset();
    const Response response = problem(why, {"", id, ""});
    const auto& body = std::get<std::string>(response.body);
    Framing framing;
    framing.request_id = id;
    framing.date = date_.at(core_.clock.wall());
    framing.length = body.size();
    framing.keep_alive = false;
    connection.output = renderHead(response, framing) + body;
    connection.output_at = 0;
    connection.keep = false;
    connection.peer_may_send = true;
    startFlush(connection);
}

AccessEntry EventLoop::unanswered(Connection& connection) {
    if (connection.exchange) return connection.exchange->access();
    if (connection.head_done) return Exchange(connection, core_, ids_).access();
    AccessEntry entry;
    entry.client = connection.peer;
    entry.bytes_in = connection.input.size();
    entry.started_at = connection.receiving ? connection.receiving_since : core_.clock.now();
    return entry;
}

void EventLoop::startFlush(Connection& connection) {
    const TimePoint now = core_.clock.now();
    connection.place = Place::Flushing;
    connection.moved_at = now;
    connection.flush_until =
        now + core_.options.write_stall +
        milliseconds(connection.output.size() * 1'000 / core_.options.body_rate);
    timers_.set(connection, now + core_.options.write_stall);
    flush(connection);
}

void EventLoop::flush(Connection& connection) {
    const std::size_t before = connection.output_at;
    while (connection.output_at < connection.output.size()) {
        const ssize_t sent =
            ::send(connection.fd.get(), connection.output.data() + connection.output_at,
                   connection.output.size() - connection.output_at, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0 && errno == EAGAIN) {
            if (connection.output_at > before) {
                connection.moved_at = core_.clock.now();
                timers_.set(connection, std::min(connection.flush_until,
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
        connection.sent(static_cast<std::uint64_t>(sent));
    }
    connection.output = {};
    connection.output_at = 0;
    connection.output_bytes.reset();
    connection.tellAccess(core_.options.access, true);
    if (connection.keep) {
        park(connection);
    } else {
        sayGoodbye(connection);
    }
}

void EventLoop::suspend(Connection& connection) {
    connection.place = Place::Suspended;
    connections_.uncount(connection);
    timers_.set(connection,
                std::min(connection.suspension.until, connection.right.until(core_.clock)));
    watchRight(connection);
    const auto awaken = [line = lifeline_.line(), id = connection.id] {
        line.reach([&](EventLoop& loop) {
            {
                const MutexLock lock(loop.mutex_);
                loop.woken_.push_back(id);
            }
            loop.wake();
        });
    };
    connection.subscription = connection.suspension.subscribe(awaken);
    if (stopping_ || !connection.right.holds(core_.clock) || connection.suspension.ready()) {
        resume(connection);
    } else {
        arm(connection, EPOLLRDHUP | EPOLLONESHOT);
    }
}

void EventLoop::resume(Connection& connection) {
    connection.subscription.reset();
    connection.on_withdrawn.reset();
    connections_.count(connection);
    dispatch(connection);
}

void EventLoop::writeStream(Connection& connection) {
    const DetachedStream::State state = connection.stream->flush();
    if (state != DetachedStream::State::Open) {
        endStream(connection, state == DetachedStream::State::Done);
    }
}

void EventLoop::endStream(Connection& connection, bool clean) {
    connection.tellAccess(core_.options.access, clean);
    const std::shared_ptr<DetachedStream> stream = std::move(connection.stream);
    connection.stream.reset();
    connection.leaveStream();
    connection.on_withdrawn.reset();
    cutOff(stream);
    if (!clean) {
        close(connection);
    } else if (connection.keep) {
        park(connection);
    } else {
        sayGoodbye(connection);
    }
}

void EventLoop::watchRight(Connection& connection) {
    connection.on_withdrawn.emplace(connection.right.withdrawn,
                                    [line = lifeline_.line(), id = connection.id] {
                                        line.reach([&](EventLoop& loop) {
                                            {
                                                const MutexLock lock(loop.mutex_);
                                                loop.lapsed_.push_back(id);
                                            }
                                            loop.wake();
                                        });
                                    });
}

void EventLoop::endLapsed(Connection& connection) {
    connection.stream->lapse();
    // News end complete. Any other answer is incomplete, and its client must see that.
    if (connection.news_place && connection.stream->pending() == 0) {
        timers_.set(connection, core_.clock.now() + core_.options.write_stall);
        connection.stream->finish();
    } else {
        endStream(connection, false);
    }
}

void EventLoop::giveUp(Connection& connection) {
    if (!connection.news_place || !connection.news_place->given_up) return;
    if (connection.stream->pending() > 0) {
        endStream(connection, false);
    } else {
        connection.stream->finish();
    }
}

void EventLoop::cutOff(const std::shared_ptr<DetachedStream>& stream) {
    try {
        stream->close();
    } catch (const std::exception& e) {
        core_.log.error("http.stream_callback_failed", {{"error", e.what()}});
    }
}

void EventLoop::sayGoodbye(Connection& connection) {
    if (!connection.peer_may_send) {
        close(connection);
        return;
    }
    ::shutdown(connection.fd.get(), SHUT_WR);
    connection.place = Place::Closing;
    connection.flush_until = core_.clock.now() + kCloseTime;
    discard(connection);
}

void EventLoop::discard(Connection& connection) {
    std::array<char, kCopied> nobodys;
    for (int i = 0; i < kDiscardsInTurn; ++i) {
        // TCP discards the bytes itself, without a copy; the plain end of a TLS connection does
        // not.
        const int fd = connection.fd.get();
        const ssize_t got = core_.tls ? ::recv(fd, nobodys.data(), nobodys.size(), 0)
                                      : ::recv(fd, nullptr, kDiscardAtOnce, MSG_TRUNC);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && errno == EAGAIN) break;
        if (got <= 0) return close(connection);
    }
    const TimePoint now = core_.clock.now();
    if (now >= connection.flush_until) return close(connection);
    timers_.set(connection, std::min(connection.flush_until, now + kClosePause));
    arm(connection, EPOLLIN | EPOLLONESHOT);
}

void EventLoop::close(Connection& connection) {
    std::unique_ptr<Connection> owned = connections_.take(connection);
    if (!owned) return;
    const bool asked = owned->exchange || (owned->place == Place::Reading && owned->head_done);
    if (core_.options.access != nullptr && asked) {
        owned->access = std::make_unique<AccessEntry>(unanswered(*owned));
    }
    owned->tellAccess(core_.options.access, false);
    owned->leaveStream();
    if (owned->stream) cutOff(owned->stream);
    owned.reset();  // before the count falls, so that whoever sees that finds it closed
    core_.connections.store(connections_.size());
}

void EventLoop::fireTimers() {
    const TimePoint now = core_.clock.now();
    while (Connection* const connection = timers_.due(now, connections_)) {
        guard(*connection, [&] { timeout(*connection, now); });
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
            timers_.set(connection, again);
        }
        return;
    }
    if (connection.place == Place::Suspended) {
        if (now < connection.suspension.until && connection.right.holds(core_.clock)) {
            timers_.set(connection,
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
            timers_.set(*connection, std::min(now + kStreamGrace, cut_at_));
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
    if (connections_.size() > 0) cut_at_ = core_.clock.now() + kCutAgain;
}

}  // namespace hearth::api
