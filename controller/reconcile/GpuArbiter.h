#pragma once

#include <string>

#include "base/Clock.h"
#include "controller/claims/Supply.h"
#include "controller/store/SpecStore.h"
#include "controller/workspaces/WorkspaceTerminator.h"

namespace hearth::controller {

/// Decides which pool gets the GPUs that several pools want: claims in line come before warm
/// sandboxes without a claim. Thread-safe.
class GpuArbiter {
public:
    GpuArbiter(const SpecStore& specs, const Supply& supply, WorkspaceTerminator& terminator,
               const Clock& clock);

    /// The number of sandboxes of the pool that could be ready at once if no workspace ends.
    std::size_t attainable(const Pool& pool) const;
    /// Leases GPUs to the pool's next sandbox. If not enough are free, the lease has no devices,
    /// and a ready sandbox ends if that helps.
    GpuLedger::Taken lease(const Pool& pool, const std::string& hash, const pool::SandboxId& id);

private:
    /// The number of sandboxes that claims in the pool's line need and that can be made now.
    std::size_t servable(const Pool& pool) const;
    /// The number of free GPUs that the pool leaves to claims waiting in other pools.
    std::size_t reserved(const Pool& pool) const;
    /// Ends a ready sandbox of an earlier template, whose GPUs the new one waits for.
    bool giveUpStale(const Pool& pool, const std::string& hash);
    /// Ends a ready sandbox of another pool, if its GPUs fit a claim that waits for GPUs here.
    void giveUpSpare(const Pool& pool);

    const SpecStore& specs_;
    const Supply supply_;
    WorkspaceTerminator& terminator_;
    const Clock& clock_;
};

}  // namespace hearth::controller
