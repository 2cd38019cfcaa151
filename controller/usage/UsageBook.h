#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/Clock.h"
#include "base/Mutex.h"
#include "controller/contract/Usage.h"
#include "controller/journal/Journal.h"

namespace hearth::controller {

/// The use of tenants and pools by hour, in the journal's table `usage`. What was added lies in
/// memory until write(). Thread-safe.
class UsageBook {
public:
    explicit UsageBook(Journal& journal) : journal_(journal) {}

    void add(const std::string& tenant, const std::string& pool, const UsageSums& sums);
    using Key = std::pair<std::string, std::string>;  ///< tenant and pool
    /// Queues what was added since the last call, for the hour of `now`, and notes that the time of
    /// every workspace has been added up to `now`. Returns what was queued. Blocks on nothing.
    std::map<Key, UsageSums> write(WallTime now);
    /// When write() was last called, by this server or one before; none: never.
    std::optional<WallTime> knownUntil();
    /// `tenant` empty: of all tenants. Includes what is in memory.
    std::vector<UsageRow> read(const std::string& tenant, const UsageQuery& query, WallTime now);

private:
    Journal& journal_;
    Mutex mutex_;
    std::map<Key, UsageSums> pending_ HEARTH_GUARDED_BY(mutex_);
    std::int64_t pruned_hour_ HEARTH_GUARDED_BY(mutex_) = 0;
};

}  // namespace hearth::controller
