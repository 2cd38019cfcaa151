#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/Clock.h"
#include "base/Mutex.h"
#include "controller/contract/Quotas.h"
#include "pool/spec/SandboxSpec.h"

namespace hearth::controller {

/// What each tenant uses, and the quotas that bound it. What is asked for is counted before it is
/// had, so no race gets past a limit. Thread-safe; must outlive what it gives.
class QuotaLedger {
public:
    explicit QuotaLedger(const Clock& clock) : clock_(clock) {}
    QuotaLedger(const QuotaLedger&) = delete;
    QuotaLedger& operator=(const QuotaLedger&) = delete;

    /// Counts until the result goes.
    using Counted = std::shared_ptr<void>;
    /// A workspace with these limits. Throws Error(QuotaExceeded) that names the limit and its use,
    /// and Error(InvalidSpec) where one such workspace is more than the whole quota.
    Counted workspace(const std::string& tenant, const pool::SandboxLimits& limits);
    /// The same of one that is there already.
    Counted workspaceAnyway(const std::string& tenant, const pool::SandboxLimits& limits);
    Counted execution(const std::string& tenant);
    Counted executionAnyway(const std::string& tenant);
    /// A claim begins. Throws Error(RateLimited) with the time until the next one may.
    void claim(const std::string& tenant);

    /// Sets a tenant's quota, or kEveryone's; nullopt: it has none of its own. Throws
    /// Error(InvalidSpec) with a field for each limit that is below what is used now.
    void set(const std::string& tenant, const std::optional<TenantQuota>& quota);
    /// The same without a look at what is used: it was in force before, or it only allows more.
    void restore(const std::string& tenant, const std::optional<TenantQuota>& quota);
    std::optional<TenantQuota> own(const std::string& tenant) const;
    /// What bounds it: its own, or kEveryone's.
    TenantQuota of(const std::string& tenant) const;
    QuotaUse use(const std::string& tenant) const;
    /// All that have a quota of their own or use anything, sorted.
    std::vector<std::string> tenants() const;

private:
    struct Bucket {
        double tokens = 0;
        TimePoint filled_at{};
    };

    const TenantQuota& quotaOf(const std::string& tenant) const HEARTH_REQUIRES(mutex_);
    void check(const std::string& tenant, const QuotaUse& more) HEARTH_REQUIRES(mutex_);
    Counted count(const std::string& tenant, const QuotaUse& more) HEARTH_REQUIRES(mutex_);
    void giveBack(const std::string& tenant, const QuotaUse& less);
    void assign(const std::string& tenant, const std::optional<TenantQuota>& quota)
        HEARTH_REQUIRES(mutex_);

    const Clock& clock_;
    mutable Mutex mutex_;
    std::map<std::string, TenantQuota> quotas_ HEARTH_GUARDED_BY(mutex_);
    std::map<std::string, QuotaUse> used_ HEARTH_GUARDED_BY(mutex_);  // without idle tenants
    std::map<std::string, Bucket> buckets_ HEARTH_GUARDED_BY(mutex_);
};

}  // namespace hearth::controller
