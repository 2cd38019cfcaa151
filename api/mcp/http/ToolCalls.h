#pragma once

#include <chrono>
#include <memory>
#include <stop_token>
#include <vector>

#include "api/mcp/http/MessageSink.h"
#include "api/mcp/server/ToolCall.h"
#include "base/Clock.h"
#include "base/task/Executor.h"
#include "metrics/Log.h"

namespace hearth::mcp {

/// Carries tool calls that wait to their clients, in turns of their tenants: sends progress, output
/// and answers, and ends what is left of calls that nobody waits for any more. Thread-safe.
class ToolCalls {
public:
    /// `pause`: after a call could not be cancelled; doubled after each failure, up to 32 times its
    /// length. `clock` and `log` must outlive this object, and it all that its calls use.
    ToolCalls(const Clock& clock, metrics::Log& log,
              std::chrono::milliseconds pause = std::chrono::seconds(1));

    enum class HangUp { Cancels, LeavesRunning };
    /// Carries the call on `sink` and releases that with the answer. When the client hangs up, the
    /// call is cancelled, or only left: its execution continues. `stop` is the server's: then the
    /// call is answered with its state.
    void follow(ToolCall call, std::shared_ptr<MessageSink> sink, std::stop_token stop,
                HangUp hang_up);
    /// Returns the answers of all calls once there are all of them; null for a cancelled one.
    /// Destroying the task leaves the calls.
    Task<std::vector<Json>> answers(std::vector<ToolCall> calls, std::stop_token stop);
    /// Ends what is left of a call, in another thread. A failure is tried again after a pause until
    /// the work has ended, kTries times at most; the call keeps its tenant's place until then.
    void leave(const ToolCall& call);

    static constexpr std::chrono::seconds kProgressEvery{10};
    static constexpr std::chrono::seconds kProgressLeast{1};
    static constexpr unsigned kTries = 20;

private:
    class Leaving;

    /// Returns one of answers(); null if the call is cancelled, and then it is left at once.
    Task<Json> answerOf(ToolCall& call, std::stop_token stop);
    Task<> carry(ToolCall call, std::shared_ptr<MessageSink> sink, std::stop_token stop,
                 HangUp hang_up);
    /// Sends everything up to the answer, unless the client does not want it any more.
    Task<> deliver(ToolCall& call, Task<Json> answer, std::shared_ptr<MessageSink> sink,
                   std::stop_token stop, HangUp hang_up);
    Task<> undo(std::shared_ptr<Call> call, std::shared_ptr<void> place);
    /// False if that must be tried again.
    bool undoOnce(const Call& call);

    const Clock& clock_;
    metrics::Log& log_;
    const std::chrono::milliseconds pause_;
    Executor undoing_;   ///< apart, because a cancel may wait for a silent agent
    Executor executor_;  ///< last: its threads use the others
};

}  // namespace hearth::mcp
