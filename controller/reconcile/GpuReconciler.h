#pragma once

#include <optional>
#include <set>
#include <string>

#include "base/Clock.h"
#include "base/Mutex.h"
#include "controller/claims/Supply.h"
#include "controller/queue/ReconcileLoop.h"
#include "controller/store/History.h"
#include "controller/store/SpecStore.h"
#include "controller/workspaces/WorkspaceTerminator.h"
#include "pool/runtime/SandboxRuntime.h"

namespace hearth::controller {

/// Brings GPUs back to the pools: scrubs devices that no sandbox holds, notices devices that come,
/// fail or go, and leases whose sandboxes are gone. Thread-safe.
class GpuReconciler {
public:
    GpuReconciler(pool::SandboxRuntime& runtime, const Supply& supply, const SpecStore& specs,
                  WorkspaceTerminator& terminator, const History& history);

    /// Does the work on keys ("gpu", uuid): its scrub. Then fills the pools that want it.
    ReconcileResult scrub(const std::string& uuid);
    /// Does the work on ("gpus", "all"): comes back every few seconds.
    ReconcileResult look();

private:
    void refill();
    /// Retires unclaimed sandboxes that hold a device with a fault that lasts two looks.
    void retireFaulty();
    void dropLost();
    void countIdle();

    pool::SandboxRuntime& runtime_;
    const Supply supply_;
    const SpecStore& specs_;
    WorkspaceTerminator& terminator_;
    const History history_;
    Mutex mutex_;
    std::optional<TimePoint> counted_ HEARTH_GUARDED_BY(mutex_);
    std::set<pool::SandboxId> faulty_ HEARTH_GUARDED_BY(mutex_);  // at the last look
};

}  // namespace hearth::controller
