#pragma once

#include <functional>
#include <map>
#include <string>

#include "base/Mutex.h"
#include "controller/queue/ReconcileLoop.h"
#include "controller/store/History.h"
#include "pool/warm/Fleet.h"

namespace hearth::controller {

/// Removes leftovers without a record, after the start and periodically, and reports the ones that
/// resist. A mark is removed only when nothing of its sandbox is left. Thread-safe.
class OrphanSweep {
public:
    OrphanSweep(const pool::Fleet& fleet, WorkQueue& work, const History& history)
        : fleet_(fleet), work_(work), history_(history) {}

    /// Work of kind "sweep": removes everything that belongs to no member, even nameless leftovers.
    /// Comes back, ever later, while something resists.
    ReconcileResult sweep();
    /// Work of kind "orphans": sandboxes without a record, for example of a create that failed
    /// half-way.
    ReconcileResult orphans();
    /// Runs work on one sandbox, and remembers whether its end failed.
    ReconcileResult watch(const pool::SandboxId& id,
                          const std::function<ReconcileResult(const pool::SandboxId&)>& work);

    /// Tells an operator, in words, what cannot be removed; empty if nothing.
    std::string condition() const;

private:
    void tell(const std::vector<pool::Leftover>& leftovers);
    void resists(const pool::SandboxId& id, const std::string& why);
    void tellOf(const pool::SandboxId& id, const std::string& why);
    void clearMarks(const std::vector<pool::SandboxId>& before);
    void count() HEARTH_REQUIRES(mutex_);

    const pool::Fleet fleet_;
    WorkQueue& work_;
    const History history_;
    mutable Mutex mutex_;
    /// Leftovers that a sweep could not remove, and why.
    std::map<pool::SandboxId, std::string> swept_ HEARTH_GUARDED_BY(mutex_);
    /// Members and orphans that could not be removed, and why.
    std::map<pool::SandboxId, std::string> ending_ HEARTH_GUARDED_BY(mutex_);
    std::string failure_ HEARTH_GUARDED_BY(mutex_);  // if the sweep as a whole failed: why
    unsigned again_ HEARTH_GUARDED_BY(mutex_) = 0;
};

}  // namespace hearth::controller
