#include "controller/workspaces/QuotaLedger.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "base/Units.h"

namespace hearth::controller {
namespace {

constexpr double kBurstSeconds = 2;
constexpr std::size_t kMostBuckets = 10'000;

QuotaUse oneWorkspace(const pool::SandboxLimits& limits) {
    return {1, limits.milli_cpu, limits.memory_bytes, 0};
}

std::string shownCpu(std::uint64_t milli) {
    return formatMilliCpu(static_cast<std::uint32_t>(milli));
}
std::string shownCount(std::uint64_t count) {
    return std::to_string(count);
}

/// One limit beside its use.
struct QuotaRow {
    const char* field;
    std::optional<std::uint64_t> most;
    std::uint64_t used;
    std::string (*shown)(std::uint64_t);
    const char* hint;
    const char* limit = nullptr;  ///< the field of a claim that lowers it
};

std::array<QuotaRow, 4> quotaRows(const TenantQuota& quota, const QuotaUse& use) {
    constexpr const char* kClose = "close a workspace that is no longer needed";
    return {{{"workspaces", quota.workspaces, use.workspaces, shownCount, kClose},
             {"cpu", quota.milli_cpu, use.milli_cpu, shownCpu, kClose, "/limits/cpu"},
             {"memory", quota.memory_bytes, use.memory_bytes, formatBytes, kClose,
              "/limits/memoryBytes"},
             {"executions", quota.executions, use.executions, shownCount,
              "wait until one has ended, or stop one"}}};
}

double burstOf(const TenantQuota& quota) {
    if (quota.claims_burst) return *quota.claims_burst;
    return std::max(1.0, std::ceil(*quota.claims_per_second * kBurstSeconds));
}

}  // namespace

const TenantQuota& QuotaLedger::quotaOf(const std::string& tenant) const {
    static const TenantQuota kNone;
    auto found = quotas_.find(tenant);
    if (found == quotas_.end()) found = quotas_.find(kEveryone);
    return found == quotas_.end() ? kNone : found->second;
}

void QuotaLedger::check(const std::string& tenant, const QuotaUse& more) {
    const TenantQuota& quota = quotaOf(tenant);
    const auto used = used_.find(tenant);
    const auto have = quotaRows(quota, used == used_.end() ? QuotaUse{} : used->second);
    const auto wanted = quotaRows(quota, more);
    for (std::size_t i = 0; i < have.size(); ++i) {
        const QuotaRow& row = have.at(i);
        const std::uint64_t extra = wanted.at(i).used;
        if (!row.most || extra == 0) continue;
        if (extra > *row.most) {
            Error error(ErrorCode::InvalidSpec, "it would take " + row.shown(extra) + " of " +
                                                    row.field +
                                                    ", more than the whole quota of tenant " +
                                                    tenant + ", " + row.shown(*row.most));
            if (row.limit) {
                error.field(row.limit, "at most " + row.shown(*row.most) + ", the tenant's quota");
            }
            throw Error(error.hint("ask for lower limits, or an administrator for a larger quota"));
        }
        if (row.used + extra > *row.most) {
            throw Error(ErrorCode::QuotaExceeded, "tenant " + tenant + " uses " +
                                                      row.shown(row.used) + " of its quota of " +
                                                      row.shown(*row.most) + " " + row.field)
                .hint(row.hint)
                .retryAfter(std::chrono::seconds(1));
        }
    }
}

QuotaLedger::Counted QuotaLedger::count(const std::string& tenant, const QuotaUse& more) {
    QuotaUse& use = used_[tenant];
    use.workspaces += more.workspaces;
    use.milli_cpu += more.milli_cpu;
    use.memory_bytes += more.memory_bytes;
    use.executions += more.executions;
    const std::shared_ptr<const QuotaUse> counted(new QuotaUse(more),
                                                  [this, tenant](const QuotaUse* what) {
                                                      giveBack(tenant, *what);
                                                      delete what;
                                                  });
    return std::const_pointer_cast<QuotaUse>(counted);
}

void QuotaLedger::giveBack(const std::string& tenant, const QuotaUse& less) {
    const MutexLock lock(mutex_);
    const auto found = used_.find(tenant);
    if (found == used_.end()) return;
    QuotaUse& use = found->second;
    use.workspaces -= less.workspaces;
    use.milli_cpu -= less.milli_cpu;
    use.memory_bytes -= less.memory_bytes;
    use.executions -= less.executions;
    if (use.workspaces == 0 && use.executions == 0) used_.erase(found);
}

QuotaLedger::Counted QuotaLedger::workspace(const std::string& tenant,
                                            const pool::SandboxLimits& limits) {
    const MutexLock lock(mutex_);
    check(tenant, oneWorkspace(limits));
    return count(tenant, oneWorkspace(limits));
}

QuotaLedger::Counted QuotaLedger::workspaceAnyway(const std::string& tenant,
                                                  const pool::SandboxLimits& limits) {
    const MutexLock lock(mutex_);
    return count(tenant, oneWorkspace(limits));
}

QuotaLedger::Counted QuotaLedger::execution(const std::string& tenant) {
    const QuotaUse one{0, 0, 0, 1};
    const MutexLock lock(mutex_);
    check(tenant, one);
    return count(tenant, one);
}

QuotaLedger::Counted QuotaLedger::executionAnyway(const std::string& tenant) {
    const MutexLock lock(mutex_);
    return count(tenant, {0, 0, 0, 1});
}

void QuotaLedger::claim(const std::string& tenant) {
    const TimePoint now = clock_.now();
    const MutexLock lock(mutex_);
    const TenantQuota& quota = quotaOf(tenant);
    if (!quota.claims_per_second) return;
    const double rate = *quota.claims_per_second;
    const double burst = burstOf(quota);
    const auto filled = [&](const Bucket& bucket) {
        return std::min(burst, bucket.tokens + rate * toSeconds(now - bucket.filled_at));
    };
    if (buckets_.size() >= kMostBuckets) {
        std::erase_if(buckets_, [&](const auto& entry) { return filled(entry.second) >= burst; });
    }
    const auto known = buckets_.find(tenant);
    const double tokens = known == buckets_.end() ? burst : filled(known->second);
    if (tokens >= 1) {
        buckets_[tenant] = {tokens - 1, now};
        return;
    }
    buckets_[tenant] = {tokens, now};
    const auto wait = static_cast<std::int64_t>(std::ceil((1 - tokens) / rate));
    throw Error(ErrorCode::RateLimited, "tenant " + tenant + " may claim " + Json(rate).dump() +
                                            " workspaces a second, " + Json(burst).dump() +
                                            " at once")
        .hint("claim less often, or keep a workspace for several runs")
        .retryAfter(std::chrono::seconds(std::max<std::int64_t>(1, wait)));
}

void QuotaLedger::set(const std::string& tenant, const std::optional<TenantQuota>& quota) {
    const MutexLock lock(mutex_);
    if (quota && tenant != kEveryone) {
        const auto used = used_.find(tenant);
        std::vector<FieldError> wrong;
        for (const QuotaRow& row :
             quotaRows(*quota, used == used_.end() ? QuotaUse{} : used->second)) {
            if (!row.most || row.used <= *row.most) continue;
            wrong.push_back(
                {std::string("/") + row.field,
                 "is " + row.shown(*row.most) + ", and " + row.shown(row.used) + " are in use"});
        }
        if (!wrong.empty()) {
            Error error(ErrorCode::InvalidSpec,
                        "the quota of tenant " + tenant + " would be below its use: " +
                            wrong.front().pointer + " " + wrong.front().reason);
            for (const FieldError& each : wrong) error.field(each.pointer, each.reason);
            throw Error(error.hint("end some of its workspaces first"));
        }
    }
    assign(tenant, quota);
}

void QuotaLedger::restore(const std::string& tenant, const std::optional<TenantQuota>& quota) {
    const MutexLock lock(mutex_);
    assign(tenant, quota);
}

void QuotaLedger::assign(const std::string& tenant, const std::optional<TenantQuota>& quota) {
    if (quota) {
        quotas_[tenant] = *quota;
    } else {
        quotas_.erase(tenant);
    }
}

std::optional<TenantQuota> QuotaLedger::own(const std::string& tenant) const {
    const MutexLock lock(mutex_);
    const auto found = quotas_.find(tenant);
    return found == quotas_.end() ? std::nullopt : std::optional(found->second);
}

TenantQuota QuotaLedger::of(const std::string& tenant) const {
    const MutexLock lock(mutex_);
    return quotaOf(tenant);
}

QuotaUse QuotaLedger::use(const std::string& tenant) const {
    const MutexLock lock(mutex_);
    const auto found = used_.find(tenant);
    return found == used_.end() ? QuotaUse{} : found->second;
}

std::vector<std::string> QuotaLedger::tenants() const {
    std::vector<std::string> names;
    const MutexLock lock(mutex_);
    for (const auto& [tenant, quota] : quotas_) names.push_back(tenant);
    for (const auto& [tenant, use] : used_) names.push_back(tenant);
    std::ranges::sort(names);
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return names;
}

}  // namespace hearth::controller
