#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <semaphore>
#include <string>
#include <utility>
#include <vector>

#include "base/Mutex.h"
#include "base/ScopeExit.h"
#include "base/tenants/TenantPlaces.h"
#include "controller/journal/Database.h"

namespace hearth::controller {

/// The connections that read the data file. No tenant can hold all of them (TenantPlaces), so a
/// tenant's long or many reads do not delay another tenant's. Thread-safe.
class JournalReaders {
public:
    static constexpr std::size_t kConnections = 4;

    explicit JournalReaders(const std::string& path) {
        idle_.reserve(kConnections);
        while (idle_.size() < kConnections) idle_.push_back(std::make_unique<Database>(path));
    }

    /// Runs `query` on the caller's thread as soon as a connection is free for `tenant`; empty: the
    /// server itself. A query must not read again: it could wait for its own connection.
    void read(const std::string& tenant, const std::function<void(Database&)>& query) {
        const std::shared_ptr<void> place = placeOf(tenant);  // released after the connection
        std::unique_ptr<Database> database;
        {
            const MutexLock lock(mutex_);
            database = std::move(idle_.back());
            idle_.pop_back();
        }
        const ScopeExit back([&] {
            const MutexLock lock(mutex_);
            idle_.push_back(std::move(database));
        });
        query(*database);
    }

private:
    std::shared_ptr<void> placeOf(const std::string& tenant) {
        if (std::shared_ptr<void> place = places_.take(tenant)) return place;
        // Shared, because the thread that gives the place may still be in release() at the return.
        const auto come = std::make_shared<std::binary_semaphore>(0);
        const std::shared_ptr<TenantPlaces::Turn> turn =
            places_.await(tenant, [come] { come->release(); });
        come->acquire();
        return turn->take();
    }

    TenantPlaces places_{kConnections, kConnections - 1};
    Mutex mutex_;
    std::vector<std::unique_ptr<Database>> idle_ HEARTH_GUARDED_BY(mutex_);
};

}  // namespace hearth::controller
