#pragma once

#include <map>
#include <string>

#include "base/Mutex.h"
#include "controller/claims/Supply.h"
#include "controller/contract/Pools.h"
#include "controller/forecast/Forecast.h"
#include "controller/layers/Layers.h"
#include "controller/reconcile/PoolDependencies.h"
#include "controller/store/History.h"
#include "controller/workspaces/WorkspaceTable.h"
#include "pool/runtime/SandboxRuntime.h"

namespace hearth::controller {

/// The last observation of each pool: its status and conditions, also as events and metrics.
/// Thread-safe.
class PoolStatuses {
public:
    PoolStatuses(const Supply& supply, const WorkspaceTable& table, Layers& layers,
                 const PoolDependencies& outside, const pool::SandboxRuntime& runtime,
                 const History& history);

    /// How many warm sandboxes a pool should have, and its forecast.
    struct Sized {
        std::size_t desired = 0;
        Outlook outlook = {};
    };
    /// Observes the pool now. `refill`: whether it is filled at all.
    void publish(const Pool& pool, const Sized& sized, bool refill);
    /// Returns the status published last, with present counts.
    PoolStatus of(const std::string& name) const;
    /// Returns the first status of a pool that was just declared, as far as known at once.
    PoolStatus first(const Pool& pool) const;
    void forget(const std::string& name);

private:
    void count(const std::string& name, PoolStatus& status) const;
    void publishReady(std::size_t ready, std::size_t desired, bool refill, PoolStatus& status);
    /// Sets the progress of creates; events when they begin and end to wait for their image.
    void publishProgress(const Pool& pool, const CircuitBreaker::State& breaker,
                         PoolStatus& status);
    /// The condition of a pool that wants more sandboxes than its spec allows.
    void publishLimit(const Pool& pool, const pool::PoolCounts& counts, PoolStatus& status);
    /// Sets the schedule in force; an event if it has changed.
    void publishSchedule(const Pool& pool, PoolStatus& status);
    /// The condition of its prewarm, if it has any.
    void publishPrewarm(const Pool& pool, const CircuitBreaker::State& breaker, PoolStatus& status);
    /// The condition of the GPUs that its next sandbox needs.
    void publishGpus(const Pool& pool, const CircuitBreaker::State& breaker, PoolStatus& status);

    const Supply supply_;
    const WorkspaceTable& table_;
    Layers& layers_;
    const PoolDependencies& outside_;
    const pool::SandboxRuntime& runtime_;
    const History history_;
    mutable Mutex mutex_;
    std::map<std::string, PoolStatus> status_ HEARTH_GUARDED_BY(mutex_);
};

}  // namespace hearth::controller
