#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "base/Mutex.h"
#include "controller/claims/Supply.h"
#include "controller/journal/DiskReserve.h"
#include "controller/reconcile/GpuArbiter.h"
#include "controller/store/History.h"
#include "controller/store/SpecStore.h"
#include "controller/workspaces/WorkspaceTerminator.h"

namespace hearth::controller {

/// Adds members to pools, within the limits of the pool, of on-demand pools together, of the disk
/// and of the GPUs. Thread-safe.
class PoolRefiller {
public:
    PoolRefiller(const SpecStore& specs, const Supply& supply, WorkspaceTerminator& terminator,
                 const DiskBudget& disk, GpuArbiter& gpus, const History& history);

    /// Adds up to `missing` members of the template `hash`. Returns when to try again, if no event
    /// leads to that.
    std::optional<std::chrono::nanoseconds> fill(const Pool& pool, const std::string& hash,
                                                 std::size_t missing);
    /// Sets the gauges of the disk that workspaces are promised.
    void publishDisk() const;

private:
    /// How many more creates the pool may have under way.
    std::size_t pace(const Pool& pool) const;
    std::optional<std::chrono::nanoseconds> fillRoom(const Pool& pool, const std::string& hash,
                                                     std::size_t count);
    /// Returns how many more members the pool may have. On-demand pools share one such limit. If
    /// no room is left, gives up a member that no claim waits for.
    std::size_t roomFor(const Pool& pool);
    /// False if the disk has no room for all of them, or not enough GPUs are free.
    bool create(const Pool& pool, const std::string& hash, std::size_t count);
    pool::Member newMember(const Pool& pool, const std::string& hash) const;
    /// Adds the member, unless the disk has no room for it.
    bool admit(pool::Member member);

    const SpecStore& specs_;
    const Supply supply_;
    WorkspaceTerminator& terminator_;
    const DiskBudget& disk_;
    GpuArbiter& gpus_;
    const History history_;
    Mutex on_demand_mutex_;  ///< held while members of on-demand pools are counted and added
};

}  // namespace hearth::controller
