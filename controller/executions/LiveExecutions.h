#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/Mutex.h"
#include "base/tenants/TenantBytes.h"
#include "controller/executions/LiveExecution.h"

namespace hearth::controller {

/// The executions in memory: running ones, and ended ones whose records are not on disk yet. Their
/// input, output and results use the server's memory, so each tenant's share is limited.
/// Thread-safe.
class LiveExecutions {
public:
    static constexpr std::uint64_t kMostOfTenant = 512U << 20U;

    /// False if there is one with this id. Throws as requireRoom().
    bool add(const std::shared_ptr<LiveExecution>& execution);
    /// Does the same for one that ran before this server did, and never refuses it.
    bool adopt(const std::shared_ptr<LiveExecution>& execution);
    /// Throws Error(RateLimited) if the tenant has no room for this many more bytes.
    void requireRoom(const std::string& tenant, std::uint64_t bytes) const;
    const TenantBytes& kept() const { return kept_; }
    void remove(const std::string& id);
    /// Null if there is none.
    std::shared_ptr<LiveExecution> find(const std::string& id) const;
    std::vector<std::shared_ptr<LiveExecution>> all() const;
    /// Returns whether the workspace has an execution that runs or whose result is not durable yet.
    bool anyOf(const std::string& workspace) const;

private:
    struct Entry {
        std::shared_ptr<LiveExecution> execution;
        std::shared_ptr<void> counted;  ///< its room for input and output
    };

    std::shared_ptr<void> room(const std::string& tenant, std::uint64_t bytes) const;

    const TenantBytes kept_{kMostOfTenant};
    mutable Mutex mutex_;
    std::map<std::string, Entry> live_ HEARTH_GUARDED_BY(mutex_);
};

}  // namespace hearth::controller
