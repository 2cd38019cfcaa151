#include "pool/agent/ExecStream.h"

#include <algorithm>
#include <limits>

#include "pool/agent/Messages.h"

namespace hearth::agent {
namespace {

constexpr std::chrono::milliseconds kTick{100};
/// Granted for each tick beyond the output limit.
constexpr std::size_t kSlowGrant = (1U << 20U) / 10;
/// More unused credit than any window: the agent is counting on nothing we sent.
constexpr std::size_t kMaxInputCredit = 16U << 20U;

}  // namespace

ExecStream::ExecStream(std::string id, std::uint64_t offset, std::uint64_t results,
                       std::uint64_t output_limit, const std::shared_ptr<ExecSink>& sink)
    : id_(std::move(id)),
      output_limit_(output_limit),
      sink_(sink),
      next_offset_(offset),
      results_(results) {}

bool ExecStream::frame(Connection& from, const FrameHeader& header, std::string_view payload) {
    switch (header.type) {
        case FrameType::Note: {
            if (started_) throw ProtocolError("an execution started twice");
            const ExecStart started = decodeStarted(parseObject(payload), id_);
            started_ = true;
            if (const auto sink = sink_.lock()) sink->started(started);
            return false;
        }
        case FrameType::Data:
            data(from, header, payload);
            return false;
        case FrameType::Credit: {
            if (payload.size() != 4) throw ProtocolError("credit of a wrong size");
            const std::lock_guard lock(mutex_);
            const std::size_t more = getU32(reinterpret_cast<const unsigned char*>(payload.data()));
            if (more == 0 || more > kMaxInputCredit - input_credit_) {
                throw ProtocolError("senseless credit");
            }
            input_credit_ += more;
            return false;
        }
        case FrameType::End:
            if (ended_ || !payload.empty()) throw ProtocolError("an end behind the end");
            ended_ = true;
            return false;
        case FrameType::Reply: {
            if (!started_) throw ProtocolError("an execution ended before it started");
            if (!results_.whole()) throw ProtocolError("an execution ended within a result");
            const ExecResult result = decodeResult(parseObject(payload), id_);
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

void ExecStream::data(Connection& from, const FrameHeader& header, std::string_view payload) {
    if (!started_ || ended_) throw ProtocolError("output of what does not run");
    if (header.channel == Channel::Bytes || payload.size() <= kOffsetSize) {
        throw ProtocolError("output without channel or bytes");
    }
    const std::uint64_t offset = getU64(reinterpret_cast<const unsigned char*>(payload.data()));
    const std::string_view bytes = payload.substr(kOffsetSize);
    {
        const std::lock_guard lock(mutex_);
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

void ExecStream::consumed(Connection& from, const FrameHeader& header, std::size_t bytes) {
    std::size_t grant = 0;
    bool later = false;
    {
        const std::lock_guard lock(mutex_);
        if (received_ <= output_limit_) {
            owed_ += bytes;
            if (owed_ >= kInitialCredit / 2) grant = std::exchange(owed_, 0);
        } else if (header.channel == Channel::Results) {
            grant = bytes;  // a flood of output does not hold up what there is to see
        } else {
            owed_ += bytes;
            later = true;
        }
        window_ += grant;
    }
    if (grant > 0) from.postCredit(header.stream, grant);
    if (later) from.wantTick(Steady::now() + kTick);
}

void ExecStream::tick(Connection& connection, std::uint32_t stream) {
    const auto now = Steady::now();
    std::size_t grant = 0;
    std::size_t left = 0;
    Steady::time_point next;
    {
        const std::lock_guard lock(mutex_);
        if (finished_ || received_ <= output_limit_) return;
        if (now >= next_grant_) {  // ticks come for other reasons too
            grant = std::min(owed_, kSlowGrant);
            owed_ -= grant;
            window_ += grant;
            next_grant_ = now + kTick;
        }
        left = owed_;
        next = next_grant_;
    }
    if (grant > 0) connection.postCredit(stream, grant);
    if (left > 0) connection.wantTick(next);
}

std::shared_ptr<ExecSink> ExecStream::finish() {
    const std::lock_guard lock(mutex_);
    return std::exchange(finished_, true) ? nullptr : sink_.lock();
}

void ExecStream::lost() {
    if (const auto sink = finish()) sink->lost(std::nullopt);
}

bool ExecStream::canWrite() const {
    const std::lock_guard lock(mutex_);
    return input_credit_ > 0 || finished_;
}

bool ExecStream::finished() const {
    const std::lock_guard lock(mutex_);
    return finished_;
}

std::size_t ExecStream::takeCredit(std::size_t wanted) {
    const std::lock_guard lock(mutex_);
    const std::size_t taken = std::min({wanted, input_credit_, kMaxPayload});
    input_credit_ -= taken;
    return taken;
}

}  // namespace hearth::agent
