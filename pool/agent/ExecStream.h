#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "pool/agent/AgentClient.h"
#include "pool/agent/ClockShift.h"
#include "pool/agent/Connection.h"
#include "pool/agent/ResultFeed.h"

namespace hearth::agent {

/// The client's end of one execution's stream: checks the order of frames, offsets and credit,
/// tells the sink, and grants credit as the sink takes the output: at once up to the output limit,
/// then about 1 MiB/s, so that a flood costs bounded time. Does not keep the sink: what is sent to
/// one that has gone is taken and dropped. Thread-safe.
class ExecStream final : public Stream {
public:
    /// Output must begin at `offset` or later, results at `results`.
    ExecStream(std::string id, std::uint64_t offset, std::uint64_t results,
               std::uint64_t output_limit, ClockShift shift, const std::shared_ptr<ExecSink>& sink);

    bool frame(Connection& from, const FrameHeader& header, std::string_view payload) override;
    void lost() override;
    bool listens() const override { return true; }
    void tick(Connection& connection, std::uint32_t stream) override;

    /// Whether standard input can be written now, or never again.
    bool canWrite() const;
    bool finished() const;
    /// Takes at most `wanted` bytes of the credit for standard input.
    std::size_t takeCredit(std::size_t wanted);

private:
    void data(Connection& from, const FrameHeader& header, std::string_view payload);
    void output(Channel channel, std::uint64_t offset, std::string_view bytes);
    /// Gives credit back for what has been taken: results at once, output as its limit allows.
    void consumed(Connection& from, const FrameHeader& header, std::size_t bytes);
    /// Marks the last call; the sink if it is still there, and null the second time.
    std::shared_ptr<ExecSink> finish();

    const std::string id_;
    const std::uint64_t output_limit_;
    const ClockShift shift_;
    const std::weak_ptr<ExecSink> sink_;

    // Owned by whoever reads the connection.
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
};

}  // namespace hearth::agent
