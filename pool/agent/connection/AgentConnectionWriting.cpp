#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <system_error>

#include "base/Error.h"
#include "pool/agent/connection/AgentConnection.h"

// The half of AgentConnection that asks and writes; AgentConnection.cpp reads and ends.

namespace hearth::agent {
namespace {

/// The delay before a full socket is retried for frames that nobody waits for.
constexpr std::chrono::milliseconds kWriteAgain{100};
constexpr std::size_t kMaxPosted = 64U << 10U;
/// An agent refuses more streams (PROTOCOL.md), so at most these can be unanswered.
constexpr std::size_t kMostStreams = 64;

/// The answer of one simple call; the calling thread parses it.
class CallStream final : public Stream {
public:
    bool frame(AgentConnection&, const FrameHeader& header, std::string_view payload) override {
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

}  // namespace

Answer AgentConnection::call(std::string_view request, Deadline deadline) {
    const auto stream = std::make_shared<CallStream>();
    const Steady::time_point asked = Steady::now();
    open(stream, request, deadline);
    if (!await(
            stream.get(), [&stream] { return stream->done(); }, deadline)) {
        // The stream stays: a late answer closes it and is dropped.
        bool too_many = false;
        {
            const MutexLock lock(mutex_);
            too_many = streams_.size() > kMostStreams;
        }
        if (too_many) kill(End::Late, "the agent leaves too much unanswered");
        throw AgentLost("the agent did not answer in time",
                        heardSince(asked) ? Loss::Late : Loss::Silent);
    }
    return stream->take();
}

std::uint32_t AgentConnection::open(const std::shared_ptr<Stream>& stream, std::string_view request,
                                    Deadline deadline) {
    if (request.size() > kMaxPayload) {
        throw Error(ErrorCode::PayloadTooLarge, "the request is too large for the agent");
    }
    const MutexLock lock(mutex_);
    if (!takePen(deadline)) throw AgentLost("the agent does not read", Loss::Late);
    // The stream gets its number while the pen is held, so that numbers go up on the wire.
    const std::uint32_t number = next_stream_++;
    streams_.emplace(number, stream);
    if (stream->listens()) ++listening_;
    FrameHeader header;
    header.length = static_cast<std::uint32_t>(request.size());
    header.stream = number;
    header.type = FrameType::Request;
    transmit(header, request, deadline);
    if (stream->listens() && !reading_ && waiters_.empty() && !armed_ && !dead()) arm();
    return number;
}

void AgentConnection::send(const FrameHeader& header, std::string_view payload, Deadline deadline) {
    const MutexLock lock(mutex_);
    if (!takePen(deadline)) throw AgentLost("the agent does not read", Loss::Late);
    transmit(header, payload, deadline);
    if (dead()) throwLost();
}

/// Takes the pen: its holder writes, one frame at a time. Returns false at the deadline.
bool AgentConnection::takePen(Deadline deadline) {
    const bool free = pen_free_.waitUntil(
        mutex_, deadline, [&]() HEARTH_REQUIRES(mutex_) { return !writing_ || dead(); });
    if (dead()) throwLost();
    if (free) writing_ = true;
    return free;
}

void AgentConnection::transmit(const FrameHeader& header, std::string_view payload,
                               Deadline deadline) {
    // Posted bytes go first: they may be the rest of a frame.
    const std::string first = std::exchange(posted_, {});
    {
        const MutexUnlock unlocked(mutex_);
        std::array<unsigned char, kHeaderSize> head;
        encodeHeader(header, head.data());
        std::array<iovec, 3> parts{{{const_cast<char*>(first.data()), first.size()},
                                    {head.data(), head.size()},
                                    {const_cast<char*>(payload.data()), payload.size()}}};
        std::size_t at = 0;
        std::string problem;
        End end = End::Closed;
        while ((at < parts.size() || (sealed_ && sealed_->pending())) && problem.empty()) {
            const ssize_t n = transmitSome(parts.data() + at, parts.size() - at);
            if (n < 0) {
                if (errno == EINTR) continue;
                if (errno != EAGAIN) {
                    problem = "the connection to the agent failed: " +
                              std::generic_category().message(errno);
                } else if (dead() || !pollFor(POLLOUT, deadline)) {
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
    }
    writing_ = false;
    if (unsent()) flushPosted();
    pen_free_.notifyOne();
}

/// As sendmsg(); a sealed connection may keep some of the bytes pending.
ssize_t AgentConnection::transmitSome(const iovec* parts, std::size_t count) {
    if (sealed_) return sealed_->send(fd_.get(), parts, count);
    msghdr message{};
    message.msg_iov = const_cast<iovec*>(parts);
    message.msg_iovlen = count;
    return ::sendmsg(fd_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/// True if bytes wait for a socket that took nothing more; call it while nobody writes.
bool AgentConnection::unsent() const {
    return !posted_.empty() || (sealed_ && sealed_->pending());
}

void AgentConnection::post(FrameType type, std::uint32_t stream, std::string_view payload) {
    enqueue(type, stream, payload, false);
}

bool AgentConnection::offer(FrameType type, std::uint32_t stream, std::string_view payload) {
    return enqueue(type, stream, payload, true);
}

/// Returns false if it is not queued. `alone`: only if nobody else has queued frames or is writing.
bool AgentConnection::enqueue(FrameType type, std::uint32_t stream, std::string_view payload,
                              bool alone) {
    std::array<unsigned char, kHeaderSize> head;
    FrameHeader header;
    header.length = static_cast<std::uint32_t>(payload.size());
    header.stream = stream;
    header.type = type;
    encodeHeader(header, head.data());
    UniqueMutexLock lock(mutex_);
    if (dead() || (alone && (writing_ || unsent()))) return false;
    posted_.append(reinterpret_cast<const char*>(head.data()), head.size());
    posted_.append(payload);
    if (posted_.size() > kMaxPosted) {
        lock.unlock();
        kill(End::Violation, "the agent does not read its credit");
        return false;
    }
    flushPosted();
    return true;
}

void AgentConnection::postCredit(std::uint32_t stream, std::size_t bytes) {
    std::array<unsigned char, 4> payload;
    putU32(payload.data(), static_cast<std::uint32_t>(bytes));
    post(FrameType::Credit, stream,
         {reinterpret_cast<const char*>(payload.data()), payload.size()});
}

void AgentConnection::flushPosted() {
    while (!writing_ && unsent() && !dead()) {
        writing_ = true;
        std::string bytes = std::exchange(posted_, {});
        ssize_t n = 0;
        int error = 0;
        {
            const MutexUnlock unlocked(mutex_);
            const iovec part{bytes.data(), bytes.size()};
            n = transmitSome(&part, 1);
            error = errno;
        }
        writing_ = false;
        pen_free_.notifyOne();
        bytes.erase(0, n > 0 ? static_cast<std::size_t>(n) : 0);
        posted_.insert(0, bytes);
        if (n >= 0 && bytes.empty() && !(sealed_ && sealed_->pending())) continue;
        if (n < 0 && error != EAGAIN && error != EINTR) return;  // the reader hears the reason
        wantTickLocked(Steady::now() + kWriteAgain);
        return;
    }
}

}  // namespace hearth::agent
