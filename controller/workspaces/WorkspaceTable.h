#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/Mutex.h"
#include "controller/quota/QuotaLedger.h"
#include "controller/workspaces/Workspace.h"

namespace hearth::controller {

/// The active workspaces, and how many each tenant holds or is about to hold of each pool, with
/// their part of its quota. Thread-safe.
class WorkspaceTable {
public:
    /// A place in a tenant's quota, given back unless it became a workspace.
    class [[nodiscard]] Place {
    public:
        Place(WorkspaceTable& table, std::string key, QuotaLedger::Hold quota)
            : table_(&table), key_(std::move(key)), quota_(std::move(quota)) {}
        Place(Place&& other) noexcept
            : table_(std::exchange(other.table_, nullptr)),
              key_(std::move(other.key_)),
              quota_(std::move(other.quota_)) {}
        Place& operator=(Place&&) = delete;
        /// False once a workspace has taken it over.
        bool held() const { return table_ != nullptr; }
        /// Sets the amount that the workspace will have; throws as QuotaLedger::reserve().
        void resize(const QuotaUse& use) { quota_.resize(use); }
        ~Place() {
            if (table_ != nullptr) table_->giveBack(key_);
        }

    private:
        friend class WorkspaceTable;

        WorkspaceTable* table_;
        std::string key_;
        QuotaLedger::Hold quota_;
    };

    explicit WorkspaceTable(QuotaLedger quotas = {}) : quotas_(std::move(quotas)) {}

    /// Throws Error(QuotaExceeded) if the tenant already holds `most` of the pool, and as
    /// QuotaLedger::reserve().
    Place reserve(const std::string& tenant, const std::string& pool, std::size_t most,
                  const QuotaUse& use = {.workspaces = 1});
    /// Returns `count` places or throws likewise; InvalidSpec if they are more than `most`.
    std::vector<Place> reserve(const std::string& tenant, const std::string& pool, std::size_t most,
                               const QuotaUse& each, std::size_t count);
    QuotaLedger& quotas() { return quotas_; }
    /// With a `place` of the same tenant and pool the workspace takes it over, so that it never
    /// counts twice; without one (recovery) it counts in addition. Throws Error(Conflict) if a live
    /// workspace has its id, claim or sandbox.
    void insert(std::shared_ptr<Workspace> workspace, Place* place = nullptr);
    /// Removes exactly this one: a later attempt of its claim, with the same id and claim, stays.
    /// `at_ms`: the time of its end.
    void erase(const Workspace& workspace, std::int64_t at_ms);
    /// The end of a workspace that was here.
    struct Ended {
        std::string id;
        std::string tenant;
        EndReason reason = EndReason::Lost;
        std::int64_t at_ms = 0;
    };
    /// Known from the moment in which find() no longer finds it, for the last kMostEnded: the
    /// journal gets it later, from a queue that may wait for the disk.
    std::optional<Ended> ended(const std::string& id) const;

    std::shared_ptr<Workspace> find(const std::string& id) const;
    std::shared_ptr<Workspace> byClaim(const std::string& claim_id) const;
    std::shared_ptr<Workspace> bySandbox(const pool::SandboxId& id) const;
    std::vector<std::shared_ptr<Workspace>> all() const;
    std::size_t countOf(const std::string& pool) const;
    /// A sandbox from before the start that has not answered yet, with its workspace's facts from
    /// history; empty except `sandbox` and `pool` if history has none.
    struct Expected {
        pool::SandboxId sandbox;
        std::string pool;
        std::string workspace = {};
        std::string tenant = {};
        std::string claim_id = {};
        QuotaUse use = {.workspaces = 1};
    };
    /// Counts it in its tenant's quota until it is forgotten: when its workspace is there with all
    /// its executions, or has ended.
    void expect(const Expected& expected);
    std::optional<Expected> forgetExpected(const pool::SandboxId& sandbox);
    std::optional<Expected> expected(const pool::SandboxId& sandbox) const;
    std::optional<Expected> expectedWorkspace(const std::string& id) const;
    bool expectsClaim(const std::string& claim_id) const;
    /// True if the tenant has any, or if one has an unknown owner.
    bool expectsOf(const std::string& tenant) const;
    /// Returns for how many of them `counts` is true.
    std::size_t countExpected(const std::function<bool(const Expected&)>& counts) const;
    /// True if one has no history: it may hold any claim.
    bool expectsUnknown() const;

    /// Returns whether the tenant has a workspace of exactly this pool.
    bool holds(const std::string& tenant, const std::string& pool) const;

private:
    static constexpr std::size_t kMostEnded = 1'024;

    static std::string quotaKey(const std::string& tenant, const std::string& pool);
    void giveBack(const std::string& key);
    void release(const std::string& key) HEARTH_REQUIRES(mutex_);
    void unreserve(const Expected& expected) HEARTH_REQUIRES(mutex_);
    bool anyExpected(const std::function<bool(const Expected&)>& matches) const;

    QuotaLedger quotas_;
    mutable Mutex mutex_;
    std::map<std::string, std::shared_ptr<Workspace>> by_id_ HEARTH_GUARDED_BY(mutex_);
    std::map<std::string, std::shared_ptr<Workspace>> by_claim_ HEARTH_GUARDED_BY(mutex_);
    std::map<std::string, std::shared_ptr<Workspace>> by_sandbox_ HEARTH_GUARDED_BY(mutex_);
    std::map<std::string, std::size_t> held_ HEARTH_GUARDED_BY(mutex_);
    std::map<std::string, std::size_t> of_pool_ HEARTH_GUARDED_BY(mutex_);
    std::deque<Ended> ended_ HEARTH_GUARDED_BY(mutex_);
    std::map<pool::SandboxId, Expected> expected_ HEARTH_GUARDED_BY(mutex_);
    /// Kept apart for workspaces and for expected ones, as a sandbox may have both at once.
    std::map<pool::SandboxId, QuotaLedger::Hold> quota_ HEARTH_GUARDED_BY(mutex_);
    std::map<pool::SandboxId, QuotaLedger::Hold> expected_quota_ HEARTH_GUARDED_BY(mutex_);
};

}  // namespace hearth::controller
