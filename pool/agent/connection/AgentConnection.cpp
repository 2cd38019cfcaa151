#include "pool/agent/connection/AgentConnection.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "base/Error.h"

namespace hearth::agent {
namespace {

/// How long an idle connection may stay unread before the Poller watches it: until then, calls in
/// quick succession cost no epoll_ctl. Only when no stream listens.
constexpr std::chrono::milliseconds kLazyArm{100};
/// How long a caller spins before it blocks: agents answer small calls within this time, and a
/// wake-up on an idle processor takes as long again.
constexpr std::chrono::microseconds kLookOut{60};
/// The size of a read without the connection's own buffer; small, since it lies on the stack.
constexpr std::size_t kStackRead = 16U << 10U;
/// The reads of the Poller for one connection before it looks at the others.
constexpr int kReadsInARow = 32;

}  // namespace

std::shared_ptr<AgentConnection> AgentConnection::start(Poller& poller, AgentLink link,
                                                        OnEnd on_end) {
    std::shared_ptr<AgentConnection> connection(
        new AgentConnection(poller, std::move(link), std::move(on_end)));
    connection->poll_id_ = connection->poller_.add(connection->fd_.get(), connection);
    return connection;
}

AgentConnection::AgentConnection(Poller& poller, AgentLink link, OnEnd on_end)
    : poller_(poller),
      fd_(std::move(link.fd)),
      sealed_(std::move(link.sealed)),
      on_end_(std::move(on_end)) {}

AgentConnection::~AgentConnection() {
    if (poll_id_ != 0) poller_.remove(poll_id_, fd_.get());
}

void AgentConnection::throwLost() const {
    throw AgentLost(reason_, lossOf(end_));
}

Loss lossOf(AgentConnection::End end) noexcept {
    switch (end) {
        case AgentConnection::End::Violation:
            return Loss::Broken;
        case AgentConnection::End::Late:
            return Loss::Silent;
        case AgentConnection::End::Closed:
        case AgentConnection::End::Ours:
            break;
    }
    return Loss::Gone;
}

std::string AgentConnection::reason() const {
    const MutexLock lock(mutex_);
    return reason_;
}

AgentConnection::End AgentConnection::end() const {
    const MutexLock lock(mutex_);
    return end_;
}

// --- the reader role -----------------------------------------------------------------------------

void AgentConnection::takeRole() {
    reading_ = true;
    reader_ = std::this_thread::get_id();
    if (armed_ && !dead()) {
        armed_ = false;
        poller_.disarm(poll_id_, fd_.get());
    }
}

void AgentConnection::leaveRole() {
    if (filled_ == 0 && !buffer_.empty()) buffer_ = {};
    if (opened_.empty() && opened_.capacity() > kStackRead) opened_ = {};
    if (dead() && !buried_) bury();
    reading_ = false;
    reader_ = {};
    handOver();
}

void AgentConnection::handOver() {
    if (dead()) {
        wakeAll();
    } else if (!waiters_.empty()) {
        waiters_.front()->woken = true;
        waiters_.front()->wakeup.notifyOne();
    } else if (!armed_) {
        if (listening_ > 0) {
            arm();
        } else {
            wantTickLocked(Steady::now() + kLazyArm);
        }
    }
}

void AgentConnection::arm() {
    armed_ = true;
    poller_.arm(poll_id_, fd_.get());
}

void AgentConnection::wake(const Stream* stream) {
    for (Waiter* waiter : waiters_) {
        if (waiter->stream != stream) continue;
        waiter->woken = true;
        waiter->wakeup.notifyOne();
    }
}

void AgentConnection::wakeAll() {
    for (Waiter* waiter : waiters_) {
        waiter->woken = true;
        waiter->wakeup.notifyOne();
    }
}

bool AgentConnection::await(const Stream* stream, const std::function<bool()>& ready,
                            Deadline deadline) {
    Waiter self{.stream = stream, .wakeup = {}};
    UniqueMutexLock lock(mutex_);
    if (reading_ && reader_ == std::this_thread::get_id()) {
        if (dead()) throwLost();
        throw std::logic_error("a sink asked the client that called it");
    }
    waiters_.push_back(&self);
    bool leading = false;
    bool is_ready = false;
    bool near = stream != nullptr;  // an execution's output may take its time
    for (;;) {
        self.woken = false;
        lock.unlock();
        is_ready = ready();
        lock.lock();
        if (is_ready || (dead() && told_) || Steady::now() >= deadline) break;
        if (!leading && !reading_) {
            takeRole();
            leading = true;
        }
        if (!leading) {
            self.wakeup.waitUntil(mutex_, deadline,
                                  [&]() HEARTH_REQUIRES(mutex_) { return self.woken; });
            continue;
        }
        if (dead()) {
            bury();
            continue;
        }
        lock.unlock();
        if (waitReadable(deadline, near)) readOnce();
        near = false;
        lock.lock();
        wake(nullptr);
    }
    waiters_.erase(std::find(waiters_.begin(), waiters_.end(), &self));
    if (leading) {
        leaveRole();
    } else if (!reading_) {
        handOver();
    }
    if (!is_ready && dead()) throwLost();
    return is_ready;
}

void AgentConnection::ready() {
    UniqueMutexLock lock(mutex_);
    armed_ = false;
    if (reading_ || dead()) return;
    takeRole();
    lock.unlock();
    for (int i = 0; i < kReadsInARow && !dead() && readOnce(); ++i) {
    }
    lock.lock();
    wake(nullptr);
    leaveRole();
}

void AgentConnection::due(Steady::time_point now) {
    std::vector<std::pair<std::uint32_t, std::shared_ptr<Stream>>> listeners;
    bool expired = false;
    {
        const MutexLock lock(mutex_);
        // An earlier tick has already run, and has asked for its own successor.
        if (!tick_at_ || *tick_at_ > now) return;
        tick_at_.reset();
        if (dead()) return;
        if (!reading_ && waiters_.empty() && !armed_) arm();
        for (const auto& [number, stream] : streams_) {
            if (stream->listens()) listeners.emplace_back(number, stream);
        }
        flushPosted();
        expired = expire_at_ && now >= *expire_at_;
        if (expire_at_ && !expired) wantTickLocked(*expire_at_);
    }
    for (const auto& [number, stream] : listeners) stream->tick(*this, number);
    if (expired) kill(End::Ours, "the connection was idle");
}

void AgentConnection::wantTick(Steady::time_point at) {
    const MutexLock lock(mutex_);
    wantTickLocked(at);
}

std::size_t AgentConnection::allowPaced(std::size_t wanted) {
    return poller_.allowPaced(wanted, Steady::now());
}

void AgentConnection::wantTickLocked(Steady::time_point at) {
    if (tick_at_ && *tick_at_ <= at) return;
    tick_at_ = at;
    poller_.schedule(weak_from_this(), at);
}

void AgentConnection::expireAt(std::optional<Steady::time_point> at) {
    const MutexLock lock(mutex_);
    expire_at_ = at;
    if (at) wantTickLocked(*at);
}

// --- the end -------------------------------------------------------------------------------------

void AgentConnection::kill(End end, const std::string& reason) {
    const MutexLock lock(mutex_);
    if (dead()) return;
    end_ = end;
    reason_ = reason;
    dead_.store(true, std::memory_order_release);
    if (sealed_ && end == End::Ours && !writing_) sealed_->finish(fd_.get());
    ::shutdown(fd_.get(), SHUT_RDWR);  // wakes readers and writers
    wakeAll();
    pen_free_.notifyAll();
    if (reading_) return;  // the reader informs the streams
    takeRole();
    leaveRole();
}

void AgentConnection::bury() {
    auto streams = std::move(streams_);
    streams_.clear();
    listening_ = 0;
    buffer_ = {};
    filled_ = 0;
    opened_ = {};
    std::string failures;
    {
        const MutexUnlock unlocked(mutex_);
        for (const auto& [number, stream] : streams) {
            try {
                stream->lost();
            } catch (const std::exception& e) {
                failures += std::string("; a sink failed: ") + e.what();
            }
        }
        streams.clear();
    }
    reason_ += failures;
    told_ = true;
    wakeAll();
    if (!closing_ && on_end_) {
        const End end = end_;
        const std::string reason = reason_;
        const MutexUnlock unlocked(mutex_);
        on_end_(end, reason);
    }
    buried_ = true;
    buried_cv_.notifyAll();
}

void AgentConnection::close() {
    {
        const MutexLock lock(mutex_);
        closing_ = true;
    }
    kill(End::Ours, "closed by the server");
    const MutexLock lock(mutex_);
    if (reading_ && reader_ == std::this_thread::get_id()) return;
    buried_cv_.wait(mutex_, [&]() HEARTH_REQUIRES(mutex_) { return buried_; });
}

bool AgentConnection::stale() const noexcept {
    if (dead()) return true;
    char byte = 0;
    const ssize_t n = ::recv(fd_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n >= 0 || (errno != EAGAIN && errno != EINTR);
}

// --- reading -------------------------------------------------------------------------------------

/// Returns false at the deadline.
bool AgentConnection::pollFor(short events, Deadline deadline) const {
    const auto left = std::max<std::chrono::nanoseconds>(deadline - Steady::now(),
                                                         std::chrono::nanoseconds::zero());
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
    const timespec time{seconds.count(), (left - seconds).count()};
    pollfd entry{fd_.get(), events, 0};
    const int n = ::ppoll(&entry, 1, &time, nullptr);
    if (n < 0 && errno != EINTR) throwErrno("ppoll");
    return n > 0 || (n < 0 && Steady::now() < deadline);
}

bool AgentConnection::waitReadable(Deadline deadline, bool answer_is_near) const {
    if (answer_is_near) {
        const auto until = Steady::now() + kLookOut;
        do {
            pollfd entry{fd_.get(), POLLIN, 0};
            if (::poll(&entry, 1, 0) > 0) return true;
            std::this_thread::yield();
        } while (Steady::now() < until);
    }
    return pollFor(POLLIN, deadline);
}

Fd AgentConnection::takePassed() {
    if (passed_.empty()) return {};
    Fd first = std::move(passed_.front());
    passed_.pop_front();
    return first;
}

/// As recv(). A descriptor is kept for the frame that it came with. There may be two: that of an
/// incomplete frame, and that of the next one. More than two, or unexpected ones, break the
/// protocol.
ssize_t AgentConnection::receive(char* into, std::size_t room) {
    iovec part{into, room};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control;
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t n = ::recvmsg(fd_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n <= 0) return n;
    const bool cut = (message.msg_flags & MSG_CTRUNC) != 0;
    const std::size_t before = passed_.size();
    bool one_too_many = false;
    for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
         header = CMSG_NXTHDR(&message, header)) {
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
        // The space for one is, for its alignment, large enough for two.
        const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (std::size_t i = 0; i < count; ++i) {
            int fd = -1;
            std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(fd));
            passed_.emplace_back(fd);
            one_too_many = one_too_many || i > 0 || passed_.size() > 2;
        }
    }
    if (cut && passed_.size() == before) {
        // The kernel had no descriptor left to give: that is not the agent's fault.
        kill(End::Closed, "this process has no descriptor left for what the agent passes");
        return n;
    }
    if (one_too_many || cut)
        kill(End::Violation, "the agent passed descriptors that nobody asked for");
    return n;
}

bool AgentConnection::heardSince(Steady::time_point at) const noexcept {
    return heard_.load(std::memory_order_relaxed) >= at;
}

bool AgentConnection::readOnce() {
    if (sealed_) return readSealed();
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
    const ssize_t n = receive(into, room);
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
    heard_.store(Steady::now(), std::memory_order_relaxed);
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

/// As readOnce(). No failure here means that the agent broke the protocol: a third party on the
/// network can end a connection, and must not condemn a sandbox.
bool AgentConnection::readSealed() {
    const std::size_t before = opened_.size();
    switch (sealed_->receive(fd_.get(), opened_)) {
        case SealedWire::Received::Bytes:
            break;
        case SealedWire::Received::Nothing:
            return false;
        case SealedWire::Received::Ended:
            kill(End::Closed, "the agent closed the connection");
            return false;
        case SealedWire::Received::Cut:
            kill(End::Closed, "the connection to the agent was cut");
            return false;
        case SealedWire::Received::Forged:
            kill(End::Closed, "the connection to the agent was tampered with");
            return false;
        case SealedWire::Received::Failed:
            kill(End::Closed,
                 "the connection to the agent failed: " + std::generic_category().message(errno));
            return false;
    }
    if (opened_.size() == before) return true;
    heard_.store(Steady::now(), std::memory_order_relaxed);
    const std::size_t used = consume(opened_.data(), opened_.size());
    if (dead()) return false;
    opened_.erase(0, used);
    return true;
}

std::size_t AgentConnection::consume(const char* bytes, std::size_t size) {
    std::size_t used = 0;
    while (size - used >= kHeaderSize && !dead()) {
        FrameHeader header;
        if (!decodeHeader(reinterpret_cast<const unsigned char*>(bytes + used), header)) {
            kill(End::Violation, "the agent sent bytes that are not a frame");
            break;
        }
        if (size - used < kHeaderSize + header.length) break;
        dispatch(header, {bytes + used + kHeaderSize, header.length});
        used += kHeaderSize + header.length;
    }
    return used;
}

void AgentConnection::dispatch(const FrameHeader& header, std::string_view payload) {
    std::shared_ptr<Stream> stream;
    {
        const MutexLock lock(mutex_);
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
    const MutexLock lock(mutex_);
    if (closed) {
        streams_.erase(header.stream);
        if (stream->listens()) --listening_;
    }
    wake(stream.get());
}

}  // namespace hearth::agent
