#pragma once

#include <atomic>
#include <map>
#include <optional>
#include <string>

#include "base/Mutex.h"
#include "controller/claims/Supply.h"
#include "controller/journal/DiskReserve.h"
#include "controller/layers/Layers.h"
#include "controller/queue/ReconcileLoop.h"
#include "controller/reconcile/PoolStatuses.h"
#include "controller/store/History.h"
#include "controller/store/SpecStore.h"
#include "controller/workspaces/WorkspaceTerminator.h"

namespace hearth::controller {

/// Makes one pool match its spec. Level-based: each call reads what is declared and what there is,
/// and writes the difference; lost, late and repeated calls are harmless. Members count from the
/// moment they are asked for, so nothing is created twice while a create is under way.
class PoolReconciler {
public:
    PoolReconciler(SpecStore& specs, const Supply& supply, WorkspaceTerminator& endings,
                   Layers& layers, const DiskBudget& disk, PoolStatuses& statuses,
                   const History& history);

    ReconcileResult reconcile(const std::string& name);
    const PoolStatuses& statuses() const { return statuses_; }
    /// No pool is refilled, and no claim is served, until undrain(); each pool's status says so.
    void drain();
    /// The end of a drain; after shutDown() without effect.
    void undrain();
    /// For good.
    void shutDown();
    /// Pools are not refilled at present.
    bool drained() const { return refill_ != Refill::On; }

private:
    /// How many warm sandboxes the pool should have now. Feeds and reads its forecast.
    PoolStatuses::Sized size(const Pool& pool);
    ReconcileResult endDeleted(const Pool& pool);
    /// Nothing of a pool that has gone stays: names come and go with the images of claims.
    void forget(const std::string& name);
    /// Whether retireStale(), which looks at every member, can find any.
    bool mayRetire(const PoolSpec& spec, const pool::WarmStock& stock, std::size_t floor) const;
    void retireStale(const Pool& pool, const std::string& wanted, std::size_t floor);
    std::chrono::nanoseconds untilMoment(const PoolSpec& spec) const;
    /// The reason of what is above the floor now.
    EndReason shrinkReason(const PoolSpec& spec) const;
    /// Where a sweep is due: warm sandboxes from before this are replaced. One firing gives one
    /// line, so that a jump of the clock sweeps nothing twice.
    std::optional<TimePoint> sweepLine(const Pool& pool);
    /// False where the disk has no room for all of them, or not enough GPUs are free.
    bool create(const Pool& pool, const std::string& wanted, std::size_t count);
    /// So many sandboxes of the pool could be ready at once with no end of a workspace.
    std::size_t attainable(const Pool& pool) const;
    /// The sandboxes that claims in the pool's line need, as far as they can be made now.
    std::size_t servable(const Pool& pool) const;
    /// Free GPUs that the pool leaves to claims that wait in other pools.
    std::size_t gpusKept(const Pool& pool) const;
    /// Ends a ready sandbox of an earlier template, whose GPUs the new one waits for.
    bool giveUpStale(const Pool& pool, const std::string& wanted);
    /// For a claim that waits for GPUs: ends a ready sandbox of another pool that has one.
    void giveUpSpare(const Pool& pool);
    void publishDisk();
    /// How many more members the pool may have. On-demand pools together may not have more than
    /// each alone; with none left, members that no claim waits for are given up.
    std::size_t roomFor(const Pool& pool);
    void publish(const Pool& pool, const PoolStatuses::Sized& sized);
    /// Every pool is looked at anew, which shows in its status.
    void lookAtAll();

    SpecStore& specs_;
    const Supply supply_;
    WorkspaceTerminator& endings_;
    Layers& layers_;
    const DiskBudget& disk_;
    PoolStatuses& statuses_;
    const History history_;
    enum class Refill { On, Drained, ShutDown };
    std::atomic<Refill> refill_{Refill::On};
    struct Swept {
        WallTime firing = WallTime::min();
        TimePoint line{};
    };
    Mutex swept_mutex_;
    std::map<std::string, Swept> swept_ HEARTH_GUARDED_BY(swept_mutex_);  // by pool
    std::atomic<bool> trace_failed_{false};                               ///< and was told
    Mutex on_demand_mutex_;  ///< held while members of such pools are counted and added
};

}  // namespace hearth::controller
