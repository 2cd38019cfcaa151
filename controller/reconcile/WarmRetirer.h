#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/Mutex.h"
#include "controller/claims/Supply.h"
#include "controller/store/History.h"
#include "controller/store/SpecStore.h"
#include "controller/workspaces/WorkspaceTerminator.h"

namespace hearth::controller {

/// Retires a pool's ready sandboxes that are stale, too old, swept by a schedule, or surplus.
/// Thread-safe.
class WarmRetirer {
public:
    WarmRetirer(const Supply& supply, WorkspaceTerminator& terminator, const History& history)
        : supply_(supply), terminator_(terminator), history_(history) {}

    /// `hash`: the present template's; `floor`: how many warm sandboxes the pool should have.
    void retire(const Pool& pool, const std::string& hash, const pool::WarmStock& stock,
                std::size_t floor);
    void forget(const std::string& name);

private:
    /// Returns whether retireMembers(), which looks at every member, can find any.
    bool due(const PoolSpec& spec, const pool::WarmStock& stock, std::size_t floor) const;
    void retireMembers(const Pool& pool, const std::string& hash, std::size_t floor);
    /// Returns the pool's ready sandboxes, the oldest first.
    std::vector<pool::Member> readyByAge(const std::string& name) const;
    /// Returns the reason for retiring sandboxes above the floor now.
    EndReason shrinkReason(const PoolSpec& spec) const;
    /// If a sweep is due: warm sandboxes older than the result are replaced. One firing gives one
    /// time, so that a jump of the clock does not sweep twice.
    std::optional<TimePoint> sweepLine(const Pool& pool);
    void publishSweep(const std::string& name, std::size_t count);

    const Supply supply_;
    WorkspaceTerminator& terminator_;
    const History history_;
    struct SweepLine {
        WallTime firing = WallTime::min();
        TimePoint line{};
    };
    Mutex mutex_;
    std::map<std::string, SweepLine> sweeps_ HEARTH_GUARDED_BY(mutex_);  // by pool
};

}  // namespace hearth::controller
