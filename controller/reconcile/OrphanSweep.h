#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "controller/queue/ReconcileLoop.h"
#include "controller/store/History.h"
#include "pool/warm/Fleet.h"

namespace hearth::controller {

/// Removes leftovers that no record knows, after the start and periodically, and reports those that
/// resist. A mark is removed only when nothing of its sandbox is left. Thread-safe.
class OrphanSweep {
public:
    OrphanSweep(const pool::Fleet& fleet, WorkQueue& work, const History& history)
        : fleet_(fleet), work_(work), history_(history) {}

    /// Work of kind "sweep": all that belongs to no member, also what has no name any more. Comes
    /// back, ever later, while something resists.
    ReconcileResult sweep();
    /// Work of kind "orphans": sandboxes without a record, for example of a create that failed
    /// half-way.
    ReconcileResult orphans();
    /// Runs work on one sandbox, and keeps in mind whether its end failed.
    ReconcileResult watch(const pool::SandboxId& id,
                          const std::function<ReconcileResult(const pool::SandboxId&)>& work);

    /// In words for an operator what cannot be removed; empty if nothing.
    std::string condition() const;

private:
    void tell(const std::vector<pool::Leftover>& leftovers);
    void resists(const pool::SandboxId& id, const std::string& why);
    void tellOf(const pool::SandboxId& id, const std::string& why);
    void clearMarks(const std::vector<pool::SandboxId>& before);
    void count();  // mutex_ held

    const pool::Fleet fleet_;
    WorkQueue& work_;
    const History history_;
    mutable std::mutex mutex_;
    std::map<pool::SandboxId, std::string> swept_;   // guarded by mutex_; the sweep's, and why
    std::map<pool::SandboxId, std::string> ending_;  // guarded by mutex_; members' and orphans'
    std::string failure_;                            // guarded by mutex_; of the sweep as a whole
    unsigned again_ = 0;                             // guarded by mutex_
};

}  // namespace hearth::controller
