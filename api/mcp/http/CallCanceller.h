#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "api/mcp/server/PendingToolCall.h"
#include "base/Clock.h"
#include "base/Mutex.h"
#include "controller/queue/WorkLine.h"
#include "metrics/Log.h"

namespace hearth::mcp {

/// Cancels calls that their clients have cancelled or hung up on. A cancel waits for the agent of a
/// sandbox, which may be slow or gone, so it runs in threads of its own. Tenants take turns, and
/// the last six free threads are for tenants that have none. A failed cancel is tried again after
/// a pause until its work has ended, kTries times at most. Thread-safe.
class CallCanceller {
public:
    /// `pause` is doubled after each failure, up to 32 times its length.
    CallCanceller(const Clock& clock, metrics::Log& log,
                  std::chrono::milliseconds pause = std::chrono::seconds(1));
    /// Calls that are not cancelled by then continue.
    ~CallCanceller();
    CallCanceller(const CallCanceller&) = delete;
    CallCanceller& operator=(const CallCanceller&) = delete;

    /// Does not block. The call keeps its tenant's place until it is cancelled, so that a tenant's
    /// waiting cancels are limited.
    void cancel(const PendingToolCall& call) { push(jobOf(call)); }
    /// Returns a function that calls cancel(); this object must outlive it.
    std::function<void()> cancelLater(const PendingToolCall& call);

    static constexpr unsigned kTries = 20;

private:
    struct Job {
        std::string tenant;
        std::shared_ptr<PendingWork> work;
        std::function<void()> cancel;
        std::shared_ptr<void> place;
        unsigned failures = 0;
    };

    static Job jobOf(const PendingToolCall& call);
    void push(const Job& job);
    void run(const std::stop_token& stop);
    /// Cancels a call; returns true if that must be tried again.
    bool attempt(Job& job);
    /// Puts jobs in line whose pause has ended.
    void ripen() HEARTH_REQUIRES(mutex_);
    std::chrono::nanoseconds untilNext() const HEARTH_REQUIRES(mutex_);

    const Clock& clock_;
    metrics::Log& log_;
    const std::chrono::milliseconds pause_;
    Mutex mutex_;
    StoppableCondition changed_;
    controller::WorkLine<Job> line_ HEARTH_GUARDED_BY(mutex_);
    std::multimap<TimePoint, Job> pausing_ HEARTH_GUARDED_BY(mutex_);
    std::uint64_t changes_ HEARTH_GUARDED_BY(mutex_) = 0;
    std::vector<std::jthread> threads_;
};

}  // namespace hearth::mcp
