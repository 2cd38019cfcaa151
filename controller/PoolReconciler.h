#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <string>

#include "controller/Breaker.h"
#include "controller/ClaimQueue.h"
#include "controller/Endings.h"
#include "controller/Layers.h"
#include "controller/PoolOutside.h"
#include "controller/Pools.h"
#include "controller/ReconcileLoop.h"
#include "controller/SpecStore.h"
#include "pool/WarmPool.h"

namespace hearth::controller {

/// Makes one pool match its spec. Level-based: each call reads what is declared and what there is,
/// and writes the difference; lost, late and repeated calls are harmless. Members count from the
/// moment they are asked for, so nothing is created twice while a create is under way.
class PoolReconciler {
public:
    PoolReconciler(SpecStore& specs, pool::WarmPool& warm, ClaimQueue& claims, Breaker& breaker,
                   Endings& endings, WorkQueue& work, WorkspaceTable& table, EventLog& events,
                   metrics::Metrics& metrics, Layers& layers, const PoolOutside& outside,
                   const Clock& clock);

    ReconcileResult reconcile(const std::string& name);
    /// What was seen last.
    PoolStatus status(const std::string& name) const;
    /// The same of a pool that was just declared, with what can be told at once.
    PoolStatus firstStatus(const Pool& pool) const;
    /// No pool is refilled any more (drain of everything, shutdown); each says so in its status.
    void stopRefill();
    /// After stopRefill().
    bool drained() const { return !refill_; }

private:
    void count(const std::string& name, PoolStatus& status) const;
    void endDeleted(const Pool& pool);
    /// Whether retireStale(), which looks at every member, can find any.
    bool mayRetire(const PoolSpec& spec, const pool::WarmStock& stock) const;
    void retireStale(const Pool& pool, const std::string& wanted);
    void create(const Pool& pool, const std::string& wanted, std::size_t count);
    /// How many more members the pool may have. Of pools made for claims together not more than
    /// each may have alone; with none left, those that nobody waits for make room.
    std::size_t roomFor(const Pool& pool);
    void publish(const Pool& pool, std::size_t desired);
    /// What there is to say about its prewarm, if it has any.
    void publishPrewarm(const Pool& pool, const Breaker::State& breaker, PoolStatus& status);

    SpecStore& specs_;
    pool::WarmPool& warm_;
    ClaimQueue& claims_;
    Breaker& breaker_;
    Endings& endings_;
    WorkQueue& work_;
    WorkspaceTable& table_;
    EventLog& events_;
    metrics::Metrics& metrics_;
    Layers& layers_;
    const PoolOutside& outside_;
    const Clock& clock_;
    std::atomic<bool> refill_{true};
    std::mutex on_demand_mutex_;  ///< held while members of such pools are counted and added
    mutable std::mutex mutex_;
    std::map<std::string, PoolStatus> status_;  // guarded by mutex_
};

}  // namespace hearth::controller
