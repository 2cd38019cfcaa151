#include "controller/workspaces/WorkspaceTable.h"

#include <algorithm>

#include "base/Error.h"
#include "controller/spec/PoolSpec.h"

namespace hearth::controller {

std::string WorkspaceTable::quotaKey(const std::string& tenant, const std::string& pool) {
    // Pools made for claims count as one: else a tenant would have as many places as images exist.
    return tenant + '\0' + (isOnDemandName(pool) ? std::string(kOnDemandPrefix) : pool);
}

WorkspaceTable::Place WorkspaceTable::reserve(const std::string& tenant, const std::string& pool,
                                              std::size_t most, const QuotaUse& use) {
    return std::move(reserve(tenant, pool, most, use, 1).front());
}

std::vector<WorkspaceTable::Place> WorkspaceTable::reserve(const std::string& tenant,
                                                           const std::string& pool,
                                                           std::size_t most, const QuotaUse& each,
                                                           std::size_t count) {
    if (count > 1 && count > most) {
        throw Error(ErrorCode::InvalidSpec, "pool " + pool + " gives a tenant at most " +
                                                std::to_string(most) + " workspaces")
            .field("/count", "is " + std::to_string(count) + ", limits.perTenant of the pool is " +
                                 std::to_string(most));
    }
    std::vector<QuotaLedger::Hold> quotas = quotas_.reserve(tenant, each, count);
    std::vector<Place> places;
    places.reserve(count);
    const std::string key = quotaKey(tenant, pool);
    const MutexLock lock(mutex_);
    const auto found = held_.find(key);
    const std::size_t held = found == held_.end() ? 0 : found->second;
    if (held + count > most) {
        throw Error(ErrorCode::QuotaExceeded,
                    "tenant " + tenant + " holds " + std::to_string(held) + " workspaces of pool " +
                        pool +
                        (count == 1 ? ", the most that it may have"
                                    : ", of at most " + std::to_string(most)))
            .hint("close a workspace that is no longer needed")
            .retryAfter(std::chrono::seconds(1));
    }
    held_[key] += count;
    for (QuotaLedger::Hold& quota : quotas) places.emplace_back(*this, key, std::move(quota));
    return places;
}

void WorkspaceTable::giveBack(const std::string& key) {
    const MutexLock lock(mutex_);
    release(key);
}

void WorkspaceTable::release(const std::string& key) {
    const auto found = held_.find(key);
    if (found != held_.end() && --found->second == 0) held_.erase(found);
}

void WorkspaceTable::insert(std::shared_ptr<Workspace> workspace, Place* place) {
    const WorkspaceFacts& facts = workspace->facts();
    const MutexLock lock(mutex_);
    const auto taken = [](const auto& map, const std::string& key) {
        const auto entry = map.find(key);
        return entry != map.end() && entry->second->active();
    };
    if (taken(by_id_, facts.id) || taken(by_claim_, facts.claim_id) ||
        by_sandbox_.contains(facts.sandbox)) {
        throw Error(ErrorCode::Conflict, "this workspace exists already");
    }
    QuotaLedger::Hold quota;
    if (place != nullptr && place->held()) {
        place->table_ = nullptr;
        quota = std::move(place->quota_);
        quota.correct(demandOf(facts.limits, facts.gpus.size()));
    } else {
        ++held_[quotaKey(facts.tenant, facts.pool)];
        quota = quotas_.take(facts.tenant, demandOf(facts.limits, facts.gpus.size()));
    }
    quota_[facts.sandbox] = std::move(quota);
    ++of_pool_[facts.pool];
    by_claim_[facts.claim_id] = workspace;
    by_sandbox_[facts.sandbox] = workspace;
    by_id_[facts.id] = std::move(workspace);
}

void WorkspaceTable::expect(const Expected& expected) {
    const MutexLock lock(mutex_);
    if (!expected_.emplace(expected.sandbox, expected).second || expected.tenant.empty()) return;
    ++held_[quotaKey(expected.tenant, expected.pool)];
    expected_quota_[expected.sandbox] = quotas_.take(expected.tenant, expected.use);
}

void WorkspaceTable::unreserve(const Expected& expected) {
    if (!expected.tenant.empty()) release(quotaKey(expected.tenant, expected.pool));
}

std::optional<WorkspaceTable::Expected> WorkspaceTable::forgetExpected(
    const pool::SandboxId& sandbox) {
    const MutexLock lock(mutex_);
    const auto found = expected_.find(sandbox);
    if (found == expected_.end()) return std::nullopt;
    Expected expected = std::move(found->second);
    expected_.erase(found);
    expected_quota_.erase(sandbox);
    unreserve(expected);
    return expected;
}

std::optional<WorkspaceTable::Expected> WorkspaceTable::expected(
    const pool::SandboxId& sandbox) const {
    const MutexLock lock(mutex_);
    const auto found = expected_.find(sandbox);
    return found == expected_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<WorkspaceTable::Expected> WorkspaceTable::expectedWorkspace(
    const std::string& id) const {
    const MutexLock lock(mutex_);
    for (const auto& [sandbox, expected] : expected_) {
        if (expected.workspace == id) return expected;
    }
    return std::nullopt;
}

bool WorkspaceTable::anyExpected(const std::function<bool(const Expected&)>& matches) const {
    const MutexLock lock(mutex_);
    return std::any_of(expected_.begin(), expected_.end(),
                       [&](const auto& entry) { return matches(entry.second); });
}

bool WorkspaceTable::expectsClaim(const std::string& claim_id) const {
    return anyExpected([&](const Expected& one) { return one.claim_id == claim_id; });
}

bool WorkspaceTable::expectsOf(const std::string& tenant) const {
    return anyExpected(
        [&](const Expected& one) { return one.tenant.empty() || one.tenant == tenant; });
}

std::size_t WorkspaceTable::countExpected(
    const std::function<bool(const Expected&)>& counts) const {
    const MutexLock lock(mutex_);
    return static_cast<std::size_t>(
        std::count_if(expected_.begin(), expected_.end(),
                      [&](const auto& entry) { return counts(entry.second); }));
}

bool WorkspaceTable::expectsUnknown() const {
    return anyExpected([](const Expected& one) { return one.workspace.empty(); });
}

void WorkspaceTable::erase(const Workspace& workspace, std::int64_t at_ms) {
    const WorkspaceFacts& facts = workspace.facts();
    std::shared_ptr<Workspace> last;  // destroyed outside the lock
    {
        const MutexLock lock(mutex_);
        const auto found = by_sandbox_.find(facts.sandbox);
        if (found == by_sandbox_.end()) return;
        last = std::move(found->second);
        by_sandbox_.erase(found);
        if (const std::optional<EndReason> reason = workspace.endReason()) {
            ended_.push_front({facts.id, facts.tenant, *reason, at_ms});
            if (ended_.size() > kMostEnded) ended_.pop_back();
        }
        quota_.erase(facts.sandbox);
        const auto forget = [&](auto& map, const std::string& key) {
            const auto entry = map.find(key);
            if (entry != map.end() && entry->second == last) map.erase(entry);
        };
        forget(by_id_, facts.id);
        forget(by_claim_, facts.claim_id);
        const auto count = of_pool_.find(facts.pool);
        if (--count->second == 0) of_pool_.erase(count);
    }
    giveBack(quotaKey(facts.tenant, facts.pool));
}

std::optional<WorkspaceTable::Ended> WorkspaceTable::ended(const std::string& id) const {
    const MutexLock lock(mutex_);
    const auto found =
        std::find_if(ended_.begin(), ended_.end(), [&](const Ended& one) { return one.id == id; });
    return found == ended_.end() ? std::nullopt : std::optional(*found);
}

std::shared_ptr<Workspace> WorkspaceTable::find(const std::string& id) const {
    const MutexLock lock(mutex_);
    const auto found = by_id_.find(id);
    return found == by_id_.end() ? nullptr : found->second;
}

std::shared_ptr<Workspace> WorkspaceTable::byClaim(const std::string& claim_id) const {
    const MutexLock lock(mutex_);
    const auto found = by_claim_.find(claim_id);
    return found == by_claim_.end() ? nullptr : found->second;
}

std::shared_ptr<Workspace> WorkspaceTable::bySandbox(const pool::SandboxId& id) const {
    const MutexLock lock(mutex_);
    const auto found = by_sandbox_.find(id);
    return found == by_sandbox_.end() ? nullptr : found->second;
}

std::vector<std::shared_ptr<Workspace>> WorkspaceTable::all() const {
    std::vector<std::shared_ptr<Workspace>> out;
    const MutexLock lock(mutex_);
    out.reserve(by_id_.size());
    for (const auto& [id, workspace] : by_id_) out.push_back(workspace);
    return out;
}

std::size_t WorkspaceTable::countOf(const std::string& pool) const {
    const MutexLock lock(mutex_);
    const auto found = of_pool_.find(pool);
    return found == of_pool_.end() ? 0 : found->second;
}

bool WorkspaceTable::holds(const std::string& tenant, const std::string& pool) const {
    // held_ cannot say: it counts all pools of claims' images as one.
    const MutexLock lock(mutex_);
    return std::any_of(by_id_.begin(), by_id_.end(), [&](const auto& entry) {
        const WorkspaceFacts& facts = entry.second->facts();
        return facts.tenant == tenant && facts.pool == pool;
    });
}

}  // namespace hearth::controller
