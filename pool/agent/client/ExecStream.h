#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/Mutex.h"
#include "pool/agent/client/ResultFeed.h"
#include "pool/agent/connection/AgentConnection.h"
#include "pool/agent/connection/AgentTypes.h"
#include "pool/agent/connection/ClockShift.h"

namespace hearth::agent {

/// The client's end of one execution's stream: checks the order of frames, offsets and credit,
/// calls the sink, and grants credit as the sink takes the output: at once up to the output limit,
/// then about 1 MiB/s, so that a flood costs bounded time, and at once again for the output that is
/// left after the end. If the sink has a reader to wait for, credit waits for that reader, and
/// beyond the limit the pace is bounded (AgentConnection::allowPaced). Does not own the sink: if
/// the sink is gone, its output is taken and dropped. Thread-safe.
class ExecStream final : public Stream {
public:
    /// Output must begin at `offset` or later, results at `results`.
    ExecStream(std::string id, std::uint64_t offset, std::uint64_t results,
               std::uint64_t output_limit, ClockShift shift, const std::shared_ptr<ExecSink>& sink);

    bool frame(AgentConnection& from, const FrameHeader& header, std::string_view payload) override;
    void lost() override;
    bool listens() const override { return true; }
    void tick(AgentConnection& connection, std::uint32_t stream) override;

    /// True if standard input can be written now, or never again.
    bool canWrite() const;
    bool finished() const;
    /// Takes at most `wanted` bytes of the credit for standard input.
    std::size_t takeCredit(std::size_t wanted);
    /// Same as ExecHandle::giveStdin(); `stream` is the number of this stream.
    void give(AgentConnection& connection, std::uint32_t stream, std::string bytes);

private:
    /// Sends as much of the given input as the agent and the socket take now.
    void moveGiven(AgentConnection& connection, std::uint32_t stream);
    /// Returns the next piece of the given input, its credit taken; nullopt if there is none now.
    std::optional<std::string_view> nextGiven() HEARTH_REQUIRES(mutex_);
    void note(AgentConnection& from, const FrameHeader& header, std::string_view payload);
    void gap(const Json& json);
    void data(AgentConnection& from, const FrameHeader& header, std::string_view payload);
    void output(Channel channel, std::uint64_t offset, std::string_view bytes);
    /// Gives credit back for consumed bytes: for results at once, for output as its limit allows.
    void consumed(AgentConnection& from, const FrameHeader& header, std::size_t bytes);
    /// Returns the sink's unread().
    std::optional<std::uint64_t> unread() const;
    /// Marks the last call; returns the sink if it still exists, and null the second time.
    std::shared_ptr<ExecSink> finish();

    const std::string id_;
    const std::uint64_t output_limit_;
    const ClockShift shift_;
    const std::weak_ptr<ExecSink> sink_;

    // Owned by the thread that reads the connection.
    bool started_ = false;
    bool ended_ = false;
    bool end_noted_ = false;
    std::uint64_t next_offset_;
    ResultFeed results_;

    mutable Mutex mutex_;
    bool finished_ HEARTH_GUARDED_BY(mutex_) = false;  // the last call has been made
    /// The number of bytes that the agent may still send.
    std::size_t window_ HEARTH_GUARDED_BY(mutex_) = kInitialCredit;
    std::size_t owed_ HEARTH_GUARDED_BY(mutex_) = 0;        // bytes consumed, not granted again
    std::uint64_t received_ HEARTH_GUARDED_BY(mutex_) = 0;  // bytes of output
    /// The number of bytes of output that are granted at once.
    std::uint64_t unpaced_ HEARTH_GUARDED_BY(mutex_);
    Steady::time_point next_grant_ HEARTH_GUARDED_BY(mutex_){};
    std::size_t input_credit_ HEARTH_GUARDED_BY(mutex_) = kInitialCredit;
    /// The given input; null once it is closed.
    std::shared_ptr<const std::string> given_ HEARTH_GUARDED_BY(mutex_);
    std::size_t given_at_ HEARTH_GUARDED_BY(mutex_) = 0;  // bytes of given_ already sent
    bool moving_ HEARTH_GUARDED_BY(mutex_) = false;       // a thread is sending given_
    bool move_again_ HEARTH_GUARDED_BY(mutex_) = false;   // and another thread asked for that
};

}  // namespace hearth::agent
