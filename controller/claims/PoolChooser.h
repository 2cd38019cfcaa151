#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/Error.h"
#include "base/task/Task.h"
#include "controller/claims/OnDemandPools.h"
#include "controller/contract/Principal.h"
#include "controller/contract/Workspaces.h"
#include "controller/store/SpecStore.h"
#include "controller/workspaces/WorkspaceTable.h"
#include "pool/runtime/ImageRuntime.h"
#include "pool/warm/WarmPool.h"

namespace hearth::controller {

/// Error(InvalidSpec) for a claim whose language `who` lacks ("pool p has no").
class NoLanguage final : public Error {
public:
    /// `known`: the languages that exist instead.
    NoLanguage(const std::string& who, const std::string& language,
               const std::set<std::string>& known);
};

/// Finds the pool for a claim: the named one, or the first that has its image, language,
/// network and limits. Thread-safe.
class PoolChooser {
public:
    /// `default_pool`: for claims that name no pool; empty: there is none.
    PoolChooser(SpecStore& specs, const pool::WarmPool& warm, pool::ImageRuntime& runtime,
                const WorkspaceTable& table, OnDemandPools& on_demand, std::string default_pool);

    /// A pool whose languages are not known yet may have the requested one, unless it is in
    /// `without`: the claim finds out. Errors: NotFound, InvalidSpec (NoLanguage if that is
    /// the reason), and the errors of OnDemandPools::poolFor().
    /// The arguments outlive the task.
    Task<OnDemandPools::Found> choose(const Principal& who, const WorkspaceRequest& request,
                                      const std::set<std::string>& without);

private:
    /// Returns the pool that the claim names, checked.
    PoolPtr named(const Principal& who, const WorkspaceRequest& request,
                  const std::set<std::string>& without);
    /// Returns the first declared pool that fits; null if a pool on demand may.
    PoolPtr firstThatFits(const WorkspaceRequest& request, const std::set<std::string>& without);
    bool speaks(const Pool& pool, const WorkspaceRequest& request,
                const std::set<std::string>& without) const;
    bool hasImage(const Pool& pool, const WorkspaceRequest& request) const;
    std::set<std::string> languagesOf(const std::vector<PoolPtr>& pools) const;
    /// Throws if the configured default pool is not declared: using another would be a guess.
    void requireDefaultPool(const std::vector<PoolPtr>& pools) const;

    SpecStore& specs_;
    const pool::WarmPool& warm_;
    pool::ImageRuntime& runtime_;
    const WorkspaceTable& table_;
    OnDemandPools& on_demand_;
    const std::string default_pool_;
};

}  // namespace hearth::controller
