#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/Error.h"
#include "base/Mutex.h"
#include "controller/journal/Journal.h"
#include "controller/spec/PoolSpec.h"

namespace hearth::controller {

/// The declared pools: read from memory, kept in the journal. A change is visible only after it is
/// on disk. Thread-safe.
class SpecStore {
public:
    /// Loads the pools in the journal.
    SpecStore(Journal& journal, const Clock& clock);

    /// Null if there is none.
    PoolPtr find(const std::string& name) const;
    /// In the order of their creation.
    std::vector<PoolPtr> all() const;
    /// Returns NotFound with the names of the pools that an operator declared.
    Error noPool(const std::string& name) const;

    enum class Mode { Create, Replace, CreateOrReplace };
    /// `if_match`: the required present resource version. An equal spec changes nothing. Errors:
    /// Conflict, NotFound, PreconditionFailed. `created`: set to whether the pool is new.
    PoolPtr put(Pool pool, Mode mode, std::optional<std::int64_t> if_match, bool& created);
    /// Marks the pool for deletion; the reconciler calls erase() when its sandboxes are gone.
    void markDeleting(const std::string& name);
    void erase(const std::string& name);

private:
    void save(const Pool& pool);
    std::vector<PoolPtr>::iterator place(const std::string& name) HEARTH_REQUIRES(mutex_);

    Journal& journal_;
    const Clock& clock_;
    Mutex change_mutex_;  ///< one change at a time; held across the disk
    mutable Mutex mutex_;
    std::vector<PoolPtr> pools_ HEARTH_GUARDED_BY(mutex_);  // the oldest first
};

}  // namespace hearth::controller
