#include "pool/agent/Connection.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include "base/Error.h"

namespace hearth::agent {
namespace {

/// How long an idle connection may stay unread before the Poller is given it: in between, calls
/// that follow each other cost no epoll_ctl. Only when no stream listens.
constexpr std::chrono::milliseconds kLazyArm{100};
constexpr std::size_t kMaxPosted = 64U << 10U;
/// Read at once without a buffer of the connection's own; small, for it lies on the stack.
constexpr std::size_t kStackRead = 16U << 10U;
/// The Poller's share for one connection before it looks at the others.
constexpr int kReadsInARow = 32;

/// The answer of one simple call; parsed by the thread that asked.
class CallStream final : public Stream {
public:
    bool frame(Connection&, const FrameHeader& header, std::string_view payload) override {
        if (header.type != FrameType::Reply && header.type != FrameType::Error) {
            throw ProtocolError("a frame that is no answer to a call");
        }
        answer_.error = header.type == FrameType::Error;
        answer_.payload = payload;
        done_.store(true, std::memory_order_release);
        return true;
    }
    bool done() const noexcept { return done_.load(std::memory_order_acquire); }
    Answer take() { return std::move(answer_); }

private:
    Answer answer_;
    std::atomic<bool> done_{false};
};

timespec untilDeadline(Steady::time_point deadline) {
    const auto left = std::max<std::chrono::nanoseconds>(deadline - Steady::now(),
                                                         std::chrono::nanoseconds::zero());
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
    return {seconds.count(), (left - seconds).count()};
}

/// Waits for events; false at the deadline.
bool pollUntil(int fd, short events, Steady::time_point deadline) {
    pollfd entry{fd, events, 0};
    const timespec left = untilDeadline(deadline);
    const int n = ::ppoll(&entry, 1, &left, nullptr);
    if (n < 0 && errno != EINTR) throwErrno("ppoll");
    return n > 0 || (n < 0 && Steady::now() < deadline);
}

}  // namespace

std::shared_ptr<Connection> Connection::start(Poller& poller, Fd fd, OnEnd on_end) {
    std::shared_ptr<Connection> connection(
        new Connection(poller, std::move(fd), std::move(on_end)));
    connection->poll_id_ = connection->poller_.add(connection->fd_.get(), connection);
    return connection;
}

Connection::Connection(Poller& poller, Fd fd, OnEnd on_end)
    : poller_(*poller.impl_), fd_(std::move(fd)), on_end_(std::move(on_end)) {}

Connection::~Connection() {
    if (poll_id_ != 0) poller_.remove(poll_id_, fd_.get());
}

void Connection::throwLost(std::unique_lock<std::mutex>& lock) const {
    const std::string reason = reason_;
    lock.unlock();
    throw AgentLost(reason);
}

std::string Connection::reason() const {
    const std::lock_guard lock(mutex_);
    return reason_;
}

Connection::End Connection::end() const {
    const std::lock_guard lock(mutex_);
    return end_;
}

// --- the reader role -----------------------------------------------------------------------------

void Connection::takeRole(std::unique_lock<std::mutex>&) {
    reading_ = true;
    reader_ = std::this_thread::get_id();
    if (armed_ && !dead()) {
        armed_ = false;
        poller_.disarm(poll_id_, fd_.get());
    }
}

void Connection::leaveRole(std::unique_lock<std::mutex>& lock) {
    if (filled_ == 0 && !buffer_.empty()) buffer_ = {};
    if (dead() && !buried_) bury(lock);
    reading_ = false;
    reader_ = {};
    handOver();
}

void Connection::handOver() {
    if (dead()) {
        wakeAll();
    } else if (!waiters_.empty()) {
        waiters_.front()->woken = true;
        waiters_.front()->wakeup.notify_one();
    } else if (!armed_) {
        if (listening_ > 0) {
            arm();
        } else {
            wantTickLocked(Steady::now() + kLazyArm);
        }
    }
}

void Connection::arm() {
    armed_ = true;
    poller_.arm(poll_id_, fd_.get());
}

void Connection::wake(const Stream* stream) {
    for (Waiter* waiter : waiters_) {
        if (waiter->stream != stream) continue;
        waiter->woken = true;
        waiter->wakeup.notify_one();
    }
}

void Connection::wakeAll() {
    for (Waiter* waiter : waiters_) {
        waiter->woken = true;
        waiter->wakeup.notify_one();
    }
}

bool Connection::await(const Stream* stream, const std::function<bool()>& ready,
                       Deadline deadline) {
    Waiter self{.stream = stream, .wakeup = {}};
    std::unique_lock lock(mutex_);
    if (reading_ && reader_ == std::this_thread::get_id()) {
        if (dead()) throwLost(lock);
        throw std::logic_error("a sink asked the client that called it");
    }
    waiters_.push_back(&self);
    bool leading = false;
    bool is_ready = false;
    for (;;) {
        self.woken = false;
        lock.unlock();
        is_ready = ready();
        lock.lock();
        if (is_ready || (dead() && told_) || Steady::now() >= deadline) break;
        if (!leading && !reading_) {
            takeRole(lock);
            leading = true;
        }
        if (!leading) {
            self.wakeup.wait_until(lock, deadline, [&] { return self.woken; });
            continue;
        }
        if (dead()) {
            bury(lock);
            continue;
        }
        lock.unlock();
        if (waitReadable(deadline)) readOnce();
        lock.lock();
        wake(nullptr);
    }
    waiters_.erase(std::find(waiters_.begin(), waiters_.end(), &self));
    if (leading) {
        leaveRole(lock);
    } else if (!reading_) {
        handOver();
    }
    if (!is_ready && dead()) throwLost(lock);
    return is_ready;
}

void Connection::readable() {
    std::unique_lock lock(mutex_);
    armed_ = false;
    if (reading_ || dead()) return;
    takeRole(lock);
    lock.unlock();
    for (int i = 0; i < kReadsInARow && !dead() && readOnce(); ++i) {
    }
    lock.lock();
    wake(nullptr);
    leaveRole(lock);
}

void Connection::tick(Steady::time_point now) {
    std::vector<std::pair<std::uint32_t, std::shared_ptr<Stream>>> listeners;
    bool expired = false;
    {
        std::unique_lock lock(mutex_);
        tick_at_.reset();
        if (dead()) return;
        if (!reading_ && waiters_.empty() && !armed_) arm();
        for (const auto& [number, stream] : streams_) {
            if (stream->listens()) listeners.emplace_back(number, stream);
        }
        flushPosted(lock);
        expired = expire_at_ && now >= *expire_at_;
        if (expire_at_ && !expired) wantTickLocked(*expire_at_);
    }
    for (const auto& [number, stream] : listeners) stream->tick(*this, number);
    if (expired) kill(End::Ours, "the connection was idle");
}

void Connection::wantTick(Steady::time_point at) {
    const std::lock_guard lock(mutex_);
    wantTickLocked(at);
}

void Connection::wantTickLocked(Steady::time_point at) {
    if (tick_at_ && *tick_at_ <= at) return;
    tick_at_ = at;
    poller_.schedule(weak_from_this(), at);
}

void Connection::expireAt(std::optional<Steady::time_point> at) {
    const std::lock_guard lock(mutex_);
    expire_at_ = at;
    if (at) wantTickLocked(*at);
}

// --- the end -------------------------------------------------------------------------------------

void Connection::kill(End end, const std::string& reason) {
    std::unique_lock lock(mutex_);
    if (dead()) return;
    end_ = end;
    reason_ = reason;
    dead_.store(true, std::memory_order_release);
    ::shutdown(fd_.get(), SHUT_RDWR);  // wakes whoever reads or writes
    wakeAll();
    pen_free_.notify_all();
    if (reading_) return;  // whoever reads tells the streams
    takeRole(lock);
    leaveRole(lock);
}

void Connection::bury(std::unique_lock<std::mutex>& lock) {
    auto streams = std::move(streams_);
    streams_.clear();
    listening_ = 0;
    buffer_ = {};
    filled_ = 0;
    lock.unlock();
    std::string failures;
    for (const auto& [number, stream] : streams) {
        try {
            stream->lost();
        } catch (const std::exception& e) {
            failures += std::string("; a sink failed: ") + e.what();
        }
    }
    streams.clear();
    lock.lock();
    reason_ += failures;
    told_ = true;
    wakeAll();
    if (!closing_ && on_end_) {
        const End end = end_;
        const std::string reason = reason_;
        lock.unlock();
        on_end_(end, reason);
        lock.lock();
    }
    buried_ = true;
    buried_cv_.notify_all();
}

void Connection::close() {
    {
        const std::lock_guard lock(mutex_);
        closing_ = true;
    }
    kill(End::Ours, "closed by the server");
    std::unique_lock lock(mutex_);
    if (reading_ && reader_ == std::this_thread::get_id()) return;
    buried_cv_.wait(lock, [&] { return buried_; });
}

bool Connection::stale() const noexcept {
    if (dead()) return true;
    char byte = 0;
    const ssize_t n = ::recv(fd_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n >= 0 || (errno != EAGAIN && errno != EINTR);
}

// --- reading -------------------------------------------------------------------------------------

bool Connection::waitReadable(Deadline deadline) {
    return pollUntil(fd_.get(), POLLIN, deadline);
}

bool Connection::readOnce() {
    std::array<char, kStackRead> stack;
    const bool fresh = filled_ == 0;
    char* into = stack.data();
    std::size_t room = stack.size();
    if (!fresh) {
        std::size_t frame = kHeaderSize;
        if (filled_ >= kHeaderSize) {
            frame += getU32(reinterpret_cast<const unsigned char*>(buffer_.data()));
        }
        buffer_.resize(std::max({buffer_.size(), frame, filled_ + kStackRead}));
        into = buffer_.data() + filled_;
        room = buffer_.size() - filled_;
    }
    const ssize_t n = ::recv(fd_.get(), into, room, MSG_DONTWAIT);
    if (n < 0) {
        if (errno == EAGAIN || errno == EINTR) return false;
        kill(End::Closed,
             "the connection to the agent failed: " + std::generic_category().message(errno));
        return false;
    }
    if (n == 0) {
        kill(End::Closed, "the agent closed the connection");
        return false;
    }
    const auto count = static_cast<std::size_t>(n);
    if (fresh) {
        const std::size_t used = consume(stack.data(), count);
        if (dead()) return false;
        buffer_.assign(stack.data() + used, stack.data() + count);
        filled_ = count - used;
    } else {
        filled_ += count;
        const std::size_t used = consume(buffer_.data(), filled_);
        if (dead()) return false;
        std::move(buffer_.data() + used, buffer_.data() + filled_, buffer_.data());
        filled_ -= used;
    }
    return true;
}

std::size_t Connection::consume(const char* bytes, std::size_t size) {
    std::size_t used = 0;
    while (size - used >= kHeaderSize && !dead()) {
        FrameHeader header;
        if (!decodeHeader(reinterpret_cast<const unsigned char*>(bytes + used), header)) {
            kill(End::Violation, "the agent sent what is no frame");
            break;
        }
        if (size - used < kHeaderSize + header.length) break;
        dispatch(header, {bytes + used + kHeaderSize, header.length});
        used += kHeaderSize + header.length;
    }
    return used;
}

void Connection::dispatch(const FrameHeader& header, std::string_view payload) {
    std::shared_ptr<Stream> stream;
    {
        const std::lock_guard lock(mutex_);
        if (const auto it = streams_.find(header.stream); it != streams_.end()) stream = it->second;
    }
    if (!stream) {
        kill(End::Violation, "the agent sent a frame of an unknown stream");
        return;
    }
    bool closed = false;
    try {
        closed = stream->frame(*this, header, payload);
    } catch (const ProtocolError& e) {
        kill(End::Violation, std::string("the agent broke the protocol: ") + e.what());
        return;
    } catch (const std::exception& e) {
        kill(End::Closed, std::string("a sink failed: ") + e.what());
        return;
    }
    const std::lock_guard lock(mutex_);
    if (closed) {
        streams_.erase(header.stream);
        if (stream->listens()) --listening_;
    }
    wake(stream.get());
}

// --- writing -------------------------------------------------------------------------------------

Answer Connection::call(std::string_view request, Deadline deadline) {
    const auto stream = std::make_shared<CallStream>();
    open(stream, request, deadline);
    if (!await(
            stream.get(), [&stream] { return stream->done(); }, deadline)) {
        kill(End::Late, "the agent did not answer in time");
        throw AgentLost("the agent did not answer in time");
    }
    return stream->take();
}

std::uint32_t Connection::open(const std::shared_ptr<Stream>& stream, std::string_view request,
                               Deadline deadline) {
    if (request.size() > kMaxPayload) {
        throw Error(ErrorCode::PayloadTooLarge, "the request is too large for the agent");
    }
    std::unique_lock lock(mutex_);
    if (!takePen(lock, deadline)) {
        lock.unlock();
        kill(End::Late, "the agent does not read");
        throw AgentLost("the agent does not read");
    }
    // Numbered while the pen is held, so that numbers go up on the wire.
    const std::uint32_t number = next_stream_++;
    streams_.emplace(number, stream);
    if (stream->listens()) ++listening_;
    FrameHeader header;
    header.length = static_cast<std::uint32_t>(request.size());
    header.stream = number;
    header.type = FrameType::Request;
    transmit(lock, header, request, deadline);
    if (stream->listens() && !reading_ && waiters_.empty() && !armed_ && !dead()) arm();
    return number;
}

void Connection::send(const FrameHeader& header, std::string_view payload, Deadline deadline) {
    std::unique_lock lock(mutex_);
    if (!takePen(lock, deadline)) {
        lock.unlock();
        kill(End::Late, "the agent does not read");
        throw AgentLost("the agent does not read");
    }
    transmit(lock, header, payload, deadline);
    if (dead()) throwLost(lock);
}

/// The pen: whoever has it writes, one frame at a time. False at the deadline.
bool Connection::takePen(std::unique_lock<std::mutex>& lock, Deadline deadline) {
    const bool free = pen_free_.wait_until(lock, deadline, [&] { return !writing_ || dead(); });
    if (dead()) throwLost(lock);
    if (free) writing_ = true;
    return free;
}

void Connection::transmit(std::unique_lock<std::mutex>& lock, const FrameHeader& header,
                          std::string_view payload, Deadline deadline) {
    // What was posted goes first: it may be the rest of a frame.
    const std::string first = std::exchange(posted_, {});
    lock.unlock();
    std::array<unsigned char, kHeaderSize> head;
    encodeHeader(header, head.data());
    std::array<iovec, 3> parts{{{const_cast<char*>(first.data()), first.size()},
                                {head.data(), head.size()},
                                {const_cast<char*>(payload.data()), payload.size()}}};
    std::size_t at = 0;
    std::string problem;
    End end = End::Closed;
    while (at < parts.size() && problem.empty()) {
        msghdr message{};
        message.msg_iov = &parts[at];
        message.msg_iovlen = parts.size() - at;
        const ssize_t n = ::sendmsg(fd_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0) {
            if (errno == EINTR) continue;
            if (errno != EAGAIN) {
                problem =
                    "the connection to the agent failed: " + std::generic_category().message(errno);
            } else if (dead() || !pollUntil(fd_.get(), POLLOUT, deadline)) {
                problem = "the agent does not read";
                end = End::Late;
            }
            continue;
        }
        auto sent = static_cast<std::size_t>(n);
        while (at < parts.size() && sent >= parts[at].iov_len) sent -= parts[at++].iov_len;
        if (at < parts.size()) {
            parts[at].iov_base = static_cast<char*>(parts[at].iov_base) + sent;
            parts[at].iov_len -= sent;
        }
    }
    if (!problem.empty()) kill(end, problem);
    lock.lock();
    writing_ = false;
    if (!posted_.empty()) flushPosted(lock);
    pen_free_.notify_one();
}

void Connection::post(FrameType type, std::uint32_t stream, std::string_view payload) {
    std::array<unsigned char, kHeaderSize> head;
    FrameHeader header;
    header.length = static_cast<std::uint32_t>(payload.size());
    header.stream = stream;
    header.type = type;
    encodeHeader(header, head.data());
    std::unique_lock lock(mutex_);
    if (dead()) return;
    posted_.append(reinterpret_cast<const char*>(head.data()), head.size());
    posted_.append(payload);
    if (posted_.size() > kMaxPosted) {
        lock.unlock();
        kill(End::Violation, "the agent does not read its credit");
        return;
    }
    flushPosted(lock);
}

void Connection::postCredit(std::uint32_t stream, std::size_t bytes) {
    std::array<unsigned char, 4> payload;
    putU32(payload.data(), static_cast<std::uint32_t>(bytes));
    post(FrameType::Credit, stream,
         {reinterpret_cast<const char*>(payload.data()), payload.size()});
}

void Connection::flushPosted(std::unique_lock<std::mutex>& lock) {
    while (!writing_ && !posted_.empty() && !dead()) {
        writing_ = true;
        std::string bytes = std::exchange(posted_, {});
        lock.unlock();
        const ssize_t n =
            ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        const int error = errno;
        lock.lock();
        writing_ = false;
        pen_free_.notify_one();
        bytes.erase(0, n > 0 ? static_cast<std::size_t>(n) : 0);
        if (bytes.empty()) continue;
        posted_.insert(0, bytes);
        if (n < 0 && error != EAGAIN && error != EINTR) return;  // the reader hears why
        wantTickLocked(Steady::now() + kLazyArm);
        return;
    }
}

}  // namespace hearth::agent
