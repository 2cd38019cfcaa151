#pragma once

#include <atomic>
#include <chrono>
#include <optional>
#include <string>

#include "controller/claims/Supply.h"
#include "controller/journal/DiskReserve.h"
#include "controller/layers/Layers.h"
#include "controller/queue/ReconcileLoop.h"
#include "controller/reconcile/GpuArbiter.h"
#include "controller/reconcile/PoolRefiller.h"
#include "controller/reconcile/PoolStatuses.h"
#include "controller/reconcile/WarmRetirer.h"
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
    ReconcileResult endUndeclared(const std::string& name);
    /// Forgets a pool that is gone: names come and go with the images of claims.
    void forget(const std::string& name);
    /// Returns the hash of the template that members are made of now; none while its layer is not
    /// ready. If the layer failed, waiting claims are told.
    std::optional<std::string> templateNow(const Pool& pool);
    /// Returns the time until the schedules' next moment. Waits use another clock than schedules:
    /// a jump of the wall clock is noticed at the next look, which is never far away.
    std::chrono::nanoseconds untilMoment(const PoolSpec& spec) const;
    void publish(const Pool& pool, const PoolStatuses::Sized& sized);
    /// Reconciles every pool again, which updates its status.
    void lookAtAll();

    SpecStore& specs_;
    const Supply supply_;
    WorkspaceTerminator& terminator_;
    Layers& layers_;
    PoolStatuses& statuses_;
    const History history_;
    enum class Refill { On, Drained, ShutDown };
    std::atomic<Refill> refill_{Refill::On};
    std::atomic<bool> trace_failed_{false};  ///< and it was logged
    GpuArbiter gpus_;
    PoolRefiller refiller_;
    WarmRetirer retirer_;
};

}  // namespace hearth::controller
