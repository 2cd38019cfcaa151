#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "pool/agent/client/AgentConnection.h"
#include "pool/agent/client/AgentTypes.h"
#include "pool/agent/client/ClockShift.h"
#include "pool/agent/client/ResultFeed.h"

namespace hearth::agent {

/// The client's end of one execution's stream: checks the order of frames, offsets and credit,
/// calls the sink, and grants credit as the sink takes the output: at once up to the output limit,
/// then about 1 MiB/s, so that a flood costs bounded time. Does not own the sink: output for a sink
/// that is gone is taken and dropped. Thread-safe.
class ExecStream final : public Stream {
public:
    /// Output must begin at `offset` or later, results at `results`.
    ExecStream(std::string id, std::uint64_t offset, std::uint64_t results,
               std::uint64_t output_limit, ClockShift shift, const std::shared_ptr<ExecSink>& sink);

    bool frame(AgentConnection& from, const FrameHeader& header, std::string_view payload) override;
    void lost() override;
    bool listens() const override { return true; }
    void tick(AgentConnection& connection, std::uint32_t stream) override;

    /// Whether standard input can be written now, or never again.
    bool canWrite() const;
    bool finished() const;
    /// Takes at most `wanted` bytes of the credit for standard input.
    std::size_t takeCredit(std::size_t wanted);
    /// As ExecHandle::giveStdin(); `stream` is the number of this one.
    void give(AgentConnection& connection, std::uint32_t stream, std::string bytes);

private:
    /// Sends of the given input what the agent and the socket take now.
    void moveGiven(AgentConnection& connection, std::uint32_t stream);
    /// The next piece of it, with its credit taken; nullopt if there is none now.
    std::optional<std::string_view> nextGiven();
    void data(AgentConnection& from, const FrameHeader& header, std::string_view payload);
    void output(Channel channel, std::uint64_t offset, std::string_view bytes);
    /// Gives credit back for what has been taken: results at once, output as its limit allows.
    void consumed(AgentConnection& from, const FrameHeader& header, std::size_t bytes);
    /// Marks the last call; the sink if it is still there, and null the second time.
    std::shared_ptr<ExecSink> finish();

    const std::string id_;
    const std::uint64_t output_limit_;
    const ClockShift shift_;
    const std::weak_ptr<ExecSink> sink_;

    // Owned by the thread that reads the connection.
    bool started_ = false;
    bool ended_ = false;
    std::uint64_t next_offset_;
    ResultFeed results_;

    mutable std::mutex mutex_;
    bool finished_ = false;                      // guarded by mutex_: the last call has been made
    std::size_t window_ = kInitialCredit;        // guarded by mutex_: what the agent may still send
    std::size_t owed_ = 0;                       // guarded by mutex_: consumed, not granted again
    std::uint64_t received_ = 0;                 // guarded by mutex_: of output
    Steady::time_point next_grant_{};            // guarded by mutex_
    std::size_t input_credit_ = kInitialCredit;  // guarded by mutex_
    std::shared_ptr<const std::string> given_;   // guarded by mutex_: input; null once it is closed
    std::size_t given_at_ = 0;                   // guarded by mutex_: so much of it is sent
    bool moving_ = false;                        // guarded by mutex_: a thread sends it
    bool move_again_ = false;  // guarded by mutex_: and another one asked for that
};

}  // namespace hearth::agent
