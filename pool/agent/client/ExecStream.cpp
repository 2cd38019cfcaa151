#include "pool/agent/client/ExecStream.h"

#include <algorithm>
#include <limits>

#include "pool/agent/connection/AgentMessages.h"

namespace hearth::agent {
namespace {

constexpr std::chrono::milliseconds kTick{100};
/// The credit granted per tick beyond the output limit, until the execution has ended.
constexpr std::size_t kSlowGrant = (1U << 20U) / 10;
/// The tick if a reader is waited for: grants the window, as far as all paced output may have it.
constexpr std::chrono::milliseconds kPacedTick{10};
/// The part of the output limit up to which a reader counts as caught up. Together with the window
/// it stays under the half that a log keeps for late readers.
constexpr std::uint64_t kCaughtUp = 8;
/// More unused credit than any window: the agent grants credit for bytes that were never sent.
constexpr std::size_t kMaxInputCredit = 16U << 20U;
/// The most given input in one frame: small compared to the queue's limit (kMaxPosted).
constexpr std::size_t kGivenPiece = 16U << 10U;
/// The delay before a busy connection is tried again for given input.
constexpr std::chrono::milliseconds kGiveAgain{2};

}  // namespace

ExecStream::ExecStream(std::string id, std::uint64_t offset, std::uint64_t results,
                       std::uint64_t output_limit, ClockShift shift,
                       const std::shared_ptr<ExecSink>& sink)
    : id_(std::move(id)),
      output_limit_(output_limit),
      shift_(shift),
      sink_(sink),
      next_offset_(offset),
      results_(results),
      unpaced_(output_limit) {}

bool ExecStream::frame(AgentConnection& from, const FrameHeader& header, std::string_view payload) {
    switch (header.type) {
        case FrameType::Note:
            note(from, header, payload);
            return false;
        case FrameType::Data:
            data(from, header, payload);
            return false;
        case FrameType::Credit: {
            if (payload.size() != 4) throw ProtocolError("credit of a wrong size");
            const std::size_t more = getU32(reinterpret_cast<const unsigned char*>(payload.data()));
            {
                const MutexLock lock(mutex_);
                if (more == 0 || more > kMaxInputCredit - input_credit_) {
                    throw ProtocolError("senseless credit");
                }
                input_credit_ += more;
            }
            moveGiven(from, header.stream);
            return false;
        }
        case FrameType::End:
            if (ended_ || !payload.empty()) throw ProtocolError("an end behind the end");
            ended_ = true;
            return false;
        case FrameType::Reply: {
            if (!started_) throw ProtocolError("an execution ended before it started");
            if (!results_.whole()) throw ProtocolError("an execution ended within a result");
            ExecResult result = decodeResult(parseObject(payload), id_);
            result.started_at = shift_.ours(result.started_at);
            result.ended_at = shift_.ours(result.ended_at);
            if (const auto sink = finish()) sink->exited(result);
            return true;
        }
        case FrameType::Error: {
            const AgentError error = decodeError(payload);
            if (const auto sink = finish()) sink->lost(error);
            return true;
        }
        default:
            throw ProtocolError("a frame that only a client may send");
    }
}

void ExecStream::note(AgentConnection& from, const FrameHeader& header, std::string_view payload) {
    const Json json = parseObject(payload);
    if (!started_) {
        ExecStart started = decodeStarted(json, id_);
        started.at = shift_.ours(started.at);
        started_ = true;
        if (const auto sink = sink_.lock()) sink->started(started);
        return;
    }
    if (const auto found = json.find("gap"); found != json.end()) return gap(*found);
    if (std::exchange(end_noted_, true) || json != Json{{"ended", true}}) {
        throw ProtocolError("an execution started or ended twice");
    }
    {
        const MutexLock lock(mutex_);
        unpaced_ = received_ + output_limit_;  // the agent's log keeps no more
    }
    consumed(from, header, 0);
}

void ExecStream::gap(const Json& json) {
    const OutputGap gap = decodeGap(json);
    if (ended_ || gap.end <= next_offset_) throw ProtocolError("a gap in output that was sent");
    next_offset_ = gap.end;
    if (const auto sink = sink_.lock()) sink->gap(gap);
}

void ExecStream::data(AgentConnection& from, const FrameHeader& header, std::string_view payload) {
    if (!started_ || ended_) throw ProtocolError("output of an execution that does not run");
    if (header.channel == Channel::Bytes || payload.size() <= kOffsetSize) {
        throw ProtocolError("output without channel or bytes");
    }
    const std::uint64_t offset = getU64(reinterpret_cast<const unsigned char*>(payload.data()));
    const std::string_view bytes = payload.substr(kOffsetSize);
    {
        const MutexLock lock(mutex_);
        if (bytes.size() > window_) throw ProtocolError("output without credit");
        window_ -= bytes.size();
        if (header.channel != Channel::Results) received_ += bytes.size();
    }
    if (header.channel == Channel::Results) {
        results_.take(offset, bytes, [this](std::string_view json) {
            if (const auto sink = sink_.lock()) sink->result(json);
        });
    } else {
        output(header.channel, offset, bytes);
    }
    consumed(from, header, bytes.size());
}

void ExecStream::output(Channel channel, std::uint64_t offset, std::string_view bytes) {
    if (offset < next_offset_ ||
        offset > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
        throw ProtocolError("output that goes backwards");
    }
    next_offset_ = offset + bytes.size();
    if (const auto sink = sink_.lock()) sink->output(static_cast<int>(channel), offset, bytes);
}

void ExecStream::consumed(AgentConnection& from, const FrameHeader& header, std::size_t bytes) {
    std::size_t grant = 0;
    bool later = false;
    const std::optional<std::uint64_t> waiting = unread();
    {
        const MutexLock lock(mutex_);
        const bool behind = waiting.value_or(0) > output_limit_ / kCaughtUp;
        const bool unpaced = !behind && received_ <= unpaced_;
        if (!behind && !unpaced && header.channel == Channel::Results) {
            grant = bytes;  // a flood of output does not delay results
        } else {
            owed_ += bytes;
            later = !unpaced;
            if (unpaced && owed_ >= kInitialCredit / 2) grant = std::exchange(owed_, 0);
        }
        window_ += grant;
    }
    if (grant > 0) from.postCredit(header.stream, grant);
    if (later) from.wantTick(Steady::now() + (waiting ? kPacedTick : kTick));
}

std::optional<std::uint64_t> ExecStream::unread() const {
    const auto sink = sink_.lock();
    return sink ? sink->unread() : std::nullopt;
}

void ExecStream::tick(AgentConnection& connection, std::uint32_t stream) {
    moveGiven(connection, stream);
    const auto now = Steady::now();
    const std::optional<std::uint64_t> waiting = unread();
    std::size_t grant = 0;
    std::size_t left = 0;
    Steady::time_point next;
    {
        const MutexLock lock(mutex_);
        const bool within = !waiting && received_ <= unpaced_;
        if (finished_ || owed_ == 0 || (within && owed_ < kInitialCredit / 2)) return;
        if (now >= next_grant_) {  // ticks come for other reasons too
            const bool caught_up = waiting && *waiting <= output_limit_ / kCaughtUp;
            if (within) {  // its reader has gone: nothing is held back any more
                grant = owed_;
            } else if (!waiting) {
                grant = std::min(owed_, kSlowGrant);
            } else if (caught_up) {
                grant = connection.allowPaced(owed_);
            }
            owed_ -= grant;
            window_ += grant;
            next_grant_ = now + (waiting ? kPacedTick : kTick);
        }
        left = owed_;
        next = next_grant_;
    }
    if (grant > 0) connection.postCredit(stream, grant);
    if (left > 0) connection.wantTick(next);
}

std::shared_ptr<ExecSink> ExecStream::finish() {
    const MutexLock lock(mutex_);
    given_.reset();
    return std::exchange(finished_, true) ? nullptr : sink_.lock();
}

void ExecStream::lost() {
    if (const auto sink = finish()) sink->lost(std::nullopt);
}

bool ExecStream::canWrite() const {
    const MutexLock lock(mutex_);
    return (input_credit_ > 0 && !given_) || finished_;
}

bool ExecStream::finished() const {
    const MutexLock lock(mutex_);
    return finished_;
}

std::size_t ExecStream::takeCredit(std::size_t wanted) {
    const MutexLock lock(mutex_);
    const std::size_t taken = std::min({wanted, input_credit_, kMaxPayload});
    input_credit_ -= taken;
    return taken;
}

void ExecStream::give(AgentConnection& connection, std::uint32_t stream, std::string bytes) {
    {
        const MutexLock lock(mutex_);
        if (finished_) return;
        given_ = std::make_shared<const std::string>(std::move(bytes));
        given_at_ = 0;
    }
    moveGiven(connection, stream);
}

std::optional<std::string_view> ExecStream::nextGiven() {
    if (!given_) return std::nullopt;
    const std::string_view left = std::string_view(*given_).substr(given_at_);
    const std::size_t size = std::min({left.size(), input_credit_, kGivenPiece});
    if (size == 0 && !left.empty()) return std::nullopt;  // wait until the program has read
    input_credit_ -= size;
    return left.substr(0, size);
}

void ExecStream::moveGiven(AgentConnection& connection, std::uint32_t stream) {
    UniqueMutexLock lock(mutex_);
    move_again_ = true;
    if (moving_) return;  // the sending thread looks again
    moving_ = true;
    while (std::exchange(move_again_, false)) {
        const std::shared_ptr<const std::string> keep = given_;  // finish() may release it
        const std::optional<std::string_view> piece = nextGiven();
        if (!piece) continue;
        lock.unlock();
        const bool taken =
            connection.offer(piece->empty() ? FrameType::End : FrameType::Data, stream, *piece);
        if (!taken) connection.wantTick(Steady::now() + kGiveAgain);
        lock.lock();
        if (!taken) {
            input_credit_ += piece->size();
        } else if (piece->empty()) {
            given_.reset();
        } else {
            given_at_ += piece->size();
            move_again_ = true;
        }
    }
    moving_ = false;
}

}  // namespace hearth::agent
