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

/// Makes one pool match its spec. Level-based: each call compares the spec with the present state,
/// and makes up the difference; lost, late and repeated calls are harmless. Members count from the
/// moment they are requested, so nothing is created twice while a create is under way.
class PoolReconciler {
public:
    PoolReconciler(SpecStore& specs, const Supply& supply, WorkspaceTerminator& terminator,
                   Layers& layers, const DiskBudget& disk, PoolStatuses& statuses,
                   const History& history);

    ReconcileResult reconcile(const std::string& name);
    const PoolStatuses& statuses() const { return statuses_; }
    /// Stops refilling pools and serving claims until undrain(); each pool's status says so.
    void drain();
    /// Ends a drain; has no effect after shutDown().
    void undrain();
    /// Stops refilling for good.
    void shutDown();
    /// True if pools are not refilled at present.
    bool drained() const { return refill_ != Refill::On; }

private:
    /// Returns how many warm sandboxes the pool should have now. Feeds and reads its forecast.
    PoolStatuses::Sized size(const Pool& pool);
    ReconcileResult endDeleted(const Pool& pool);
    /// Forgets a pool that is gone: names come and go with the images of claims.
    void forget(const std::string& name);
    /// Returns whether retireStale(), which looks at every member, can find any.
    bool mayRetire(const PoolSpec& spec, const pool::WarmStock& stock, std::size_t floor) const;
    void retireStale(const Pool& pool, const std::string& wanted, std::size_t floor);
    std::chrono::nanoseconds untilMoment(const PoolSpec& spec) const;
    /// Returns the reason for retiring sandboxes above the floor now.
    EndReason shrinkReason(const PoolSpec& spec) const;
    /// If a sweep is due: warm sandboxes older than the result are replaced. One firing gives one
    /// time, so that a jump of the clock does not sweep twice.
    std::optional<TimePoint> sweepLine(const Pool& pool);
    /// False if the disk has no room for all of them, or not enough GPUs are free.
    bool create(const Pool& pool, const std::string& wanted, std::size_t count);
    /// The number of sandboxes of the pool that could be ready at once if no workspace ends.
    std::size_t attainable(const Pool& pool) const;
    /// The number of sandboxes that claims in the pool's line need and that can be made now.
    std::size_t servable(const Pool& pool) const;
    /// The number of free GPUs that the pool leaves to claims waiting in other pools.
    std::size_t gpusKept(const Pool& pool) const;
    /// Ends a ready sandbox of an earlier template, whose GPUs the new one waits for.
    bool giveUpStale(const Pool& pool, const std::string& wanted);
    /// Ends a ready sandbox of another pool, if its GPUs fit a claim that waits for GPUs here.
    void giveUpSpare(const Pool& pool);
    void publishDisk();
    /// Returns how many more members the pool may have. On-demand pools share one such limit. If
    /// no room is left, gives up a member that no claim waits for.
    std::size_t roomFor(const Pool& pool);
    void publish(const Pool& pool, const PoolStatuses::Sized& sized);
    /// Reconciles every pool again, which updates its status.
    void lookAtAll();

    SpecStore& specs_;
    const Supply supply_;
    WorkspaceTerminator& terminator_;
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
    std::atomic<bool> trace_failed_{false};                               ///< and it was logged
    Mutex on_demand_mutex_;  ///< held while members of on-demand pools are counted and added
};

}  // namespace hearth::controller
