#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "api/http/Handler.h"
#include "api/mcp/http/CallCanceller.h"
#include "api/mcp/http/MessageSink.h"
#include "api/mcp/server/PendingToolCall.h"
#include "base/Mutex.h"
#include "controller/queue/WorkLine.h"
#include "metrics/Log.h"

namespace hearth::mcp {

/// Finishes slow tool calls on SSE streams. One thread schedules them, woken by their work, by
/// cancellation and by timers. A few threads make their messages, because answers may be long and
/// may be read from the disk; tenants take turns for them. Sends notifications/progress to callers
/// that gave a token. Thread-safe.
///
/// When a client hangs up, the protocol revision decides: its calls are cancelled, or only no
/// longer followed. When the server stops, each call is answered with its state, and its execution
/// continues.
class PendingToolCalls {
public:
    PendingToolCalls(const Clock& clock, metrics::Log& log);
    ~PendingToolCalls();
    PendingToolCalls(const PendingToolCalls&) = delete;
    PendingToolCalls& operator=(const PendingToolCalls&) = delete;

    enum class HangUp { Cancels, LeavesRunning };
    /// Follows `calls` on `sink`, which is released after the last call. `stop` is the server's.
    void follow(const std::shared_ptr<MessageSink>& sink, std::vector<PendingToolCall> calls,
                const std::stop_token& stop, HangUp hang_up);

    /// From now on a cancel of the call does not block: other threads, which may wait for its
    /// agent, cancel its work. They hold the call's place until then.
    void cancelAside(PendingToolCall& call);

    static constexpr std::chrono::seconds kProgressEvery{10};
    static constexpr std::chrono::seconds kProgressLeast{1};

private:
    struct Followed;
    using FollowedPtr = std::shared_ptr<Followed>;
    static constexpr controller::LaneRules kAnswers{"answers", 4, 3};

    /// The part that callbacks use in other threads. It outlives this object for as long as they
    /// need it.
    struct Inbox {
        Mutex mutex;
        StoppableCondition changed;  ///< something is there to schedule
        Condition due;               ///< a call is there to look at, or all has ended
        std::set<std::uint64_t> dirty HEARTH_GUARDED_BY(mutex);
        std::vector<std::pair<std::uint64_t, FollowedPtr>> arrived HEARTH_GUARDED_BY(mutex);
        controller::WorkLine<FollowedPtr> line HEARTH_GUARDED_BY(mutex){kAnswers};
        bool looked HEARTH_GUARDED_BY(mutex) = false;    ///< a look ended since the last schedule()
        bool stop_now HEARTH_GUARDED_BY(mutex) = false;  ///< the server began to stop
        bool stopping HEARTH_GUARDED_BY(mutex) = false;  ///< and schedule() has handled that
        bool over HEARTH_GUARDED_BY(mutex) = false;      ///< no more calls are put in line

        void mark(std::uint64_t id);
    };

    void scheduleLoop(const std::stop_token& stop);
    /// Puts due calls in line. Returns finished ones, which must be destroyed without the lock.
    std::vector<FollowedPtr> schedule() HEARTH_REQUIRES(inbox_->mutex);
    void lookLoop();
    /// Answers, reports or leaves the call; false when it is finished. One thread at a time.
    bool look(Followed& followed, bool stopping);
    /// Sends the call's new output as log messages, if its client wants them.
    static void sendOutput(Followed& followed);
    /// Calls look(); false if it fails: an exception of one call must not affect the others.
    bool lookSafely(Followed& followed, bool stopping);
    std::chrono::nanoseconds untilNext() const HEARTH_REQUIRES(inbox_->mutex);

    const Clock& clock_;
    metrics::Log& log_;
    const std::shared_ptr<Inbox> inbox_ = std::make_shared<Inbox>();
    std::map<std::uint64_t, FollowedPtr> followed_ HEARTH_GUARDED_BY(inbox_->mutex);
    std::atomic<std::uint64_t> next_id_{1};
    CallCanceller canceller_;  ///< cancels calls that no client wants any more
    std::jthread scheduler_;
    std::vector<std::jthread> lookers_;
};

}  // namespace hearth::mcp
