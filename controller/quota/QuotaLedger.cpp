#include "controller/quota/QuotaLedger.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/Error.h"
#include "base/Units.h"

namespace hearth::controller {
namespace {

/// At this number of buckets, full ones are dropped.
constexpr std::size_t kSweepBucketsAt = 1024;
/// Devices that a tenant had and that are being scrubbed are nobody's to use: without a bound, one
/// that opens and closes workspaces would take all GPUs from the others.
constexpr std::uint64_t kMostOccupied = 2;
/// A guess: the server cannot know when a tenant closes its workspaces.
constexpr auto kTryAgain = std::chrono::seconds(5);

/// One dimension of a quota: its names, and its members in the structs.
struct Dimension {
    const char* name;
    const char* words;
    std::optional<std::uint64_t> QuotaSpec::*limit;
    std::uint64_t QuotaUse::*use;
};
constexpr std::array<Dimension, 5> kDimensions = {{
    {"workspaces", "workspaces", &QuotaSpec::workspaces, &QuotaUse::workspaces},
    {"cpu", "cpu", &QuotaSpec::milli_cpu, &QuotaUse::milli_cpu},
    {"memory", "memory", &QuotaSpec::memory_bytes, &QuotaUse::memory_bytes},
    {"gpus", "GPUs", &QuotaSpec::gpus, &QuotaUse::gpus},
    {"executions", "running executions", &QuotaSpec::executions, &QuotaUse::executions},
}};

std::string amount(const Dimension& of, std::uint64_t value) {
    if (of.use == &QuotaUse::memory_bytes) return formatBytes(value);
    if (of.use == &QuotaUse::milli_cpu) {
        return formatMilliCpu(
            static_cast<std::uint32_t>(std::min<std::uint64_t>(value, UINT32_MAX)));
    }
    return std::to_string(value);
}

/// The error of a demand above the whole quota.
Error neverCovered(const std::string& tenant, const Dimension& of, const std::string& asks,
                   const std::string& whole) {
    return Error(ErrorCode::InvalidSpec, "this asks for " + asks + " " + of.words +
                                             ", and the quota of tenant " + tenant + " allows " +
                                             whole + " in all")
        .field(std::string("/") + of.name, "asks for " + asks + ", the quota allows " + whole)
        .hint("ask for less, or ask the operator for a larger quota");
}

/// The error of a demand that fits the quota but not what is left of it.
Error exceeded(const std::string& tenant, const Dimension& of, const std::string& asks,
               const std::string& whole, const std::string& in_use) {
    return Error(ErrorCode::QuotaExceeded, "tenant " + tenant + " has " + in_use + " of " + whole +
                                               " " + of.words + " in use, and this needs " + asks)
        .field(std::string("/") + of.name,
               "limit " + whole + ", in use " + in_use + ", asked " + asks)
        .hint(of.use == &QuotaUse::executions ? "wait until an execution has ended"
                                              : "close a workspace that is no longer needed")
        .retryAfter(kTryAgain);
}

std::uint32_t burstOf(const QuotaSpec& spec) {
    return spec.claim_burst.value_or(2 * spec.claims_per_second.value_or(0));
}

}  // namespace

struct QuotaState {
    mutable Mutex mutex;
    std::map<std::string, QuotaSpec> specs HEARTH_GUARDED_BY(mutex);  // changed only by assign()
    /// Guaranteed workspaces, by pool and tenant; each claim reads them.
    std::map<std::string, std::map<std::string, std::uint32_t>> floors HEARTH_GUARDED_BY(mutex);
    std::map<std::string, QuotaUse> uses HEARTH_GUARDED_BY(mutex);
    std::map<std::string, std::uint64_t> occupied HEARTH_GUARDED_BY(mutex);  ///< GPUs
    std::map<std::string, TokenBucket> buckets HEARTH_GUARDED_BY(mutex);

    const QuotaSpec& specOf(const std::string& tenant) const HEARTH_REQUIRES(mutex) {
        static const QuotaSpec none;
        auto found = specs.find(tenant);
        if (found == specs.end()) found = specs.find(kDefaultQuota);
        return found == specs.end() ? none : found->second;
    }
    void assign(const std::string& tenant, const std::optional<QuotaSpec>& spec)
        HEARTH_REQUIRES(mutex) {
        for (auto pool = floors.begin(); pool != floors.end();) {
            pool->second.erase(tenant);
            pool = pool->second.empty() ? floors.erase(pool) : std::next(pool);
        }
        if (!spec) {
            specs.erase(tenant);
            return;
        }
        specs[tenant] = *spec;
        for (const auto& [pool, floor] : spec->guaranteed) floors[pool][tenant] = floor;
    }
    QuotaUse useOf(const std::string& tenant) const HEARTH_REQUIRES(mutex) {
        const auto found = uses.find(tenant);
        return found == uses.end() ? QuotaUse() : found->second;
    }
    /// Replaces `before` by `after` in the tenant's use.
    void change(const std::string& tenant, const QuotaUse& before, const QuotaUse& after)
        HEARTH_REQUIRES(mutex) {
        QuotaUse& held = uses[tenant];
        for (const Dimension& each : kDimensions) {
            held.*each.use = held.*each.use - before.*each.use + after.*each.use;
        }
        if (held == QuotaUse()) uses.erase(tenant);
    }
    void require(const std::string& tenant, const QuotaUse& before, const QuotaUse& after) const
        HEARTH_REQUIRES(mutex) {
        const QuotaSpec& spec = specOf(tenant);
        const QuotaUse held = useOf(tenant);
        for (const Dimension& each : kDimensions) {
            const std::optional<std::uint64_t>& limit = spec.*each.limit;
            const std::uint64_t wanted = after.*each.use;
            if (!limit || wanted <= before.*each.use) continue;
            const std::string asks = amount(each, wanted);
            const std::string whole = amount(each, *limit);
            if (wanted > *limit) throw neverCovered(tenant, each, asks, whole);
            const std::uint64_t others = held.*each.use - before.*each.use;
            if (others <= *limit - wanted) continue;
            throw exceeded(tenant, each, asks, whole, amount(each, others));
        }
    }
    void requireScrubbed(const std::string& tenant, std::uint64_t gpus) const
        HEARTH_REQUIRES(mutex) {
        const std::optional<std::uint64_t>& limit = specOf(tenant).gpus;
        const auto found = occupied.find(tenant);
        if (!limit || gpus == 0 || found == occupied.end()) return;
        if (found->second + gpus <= kMostOccupied * *limit) return;
        throw Error(ErrorCode::QuotaExceeded,
                    "tenant " + tenant + " has " + std::to_string(found->second) +
                        " GPUs in use or not yet scrubbed after it, and its quota is " +
                        std::to_string(*limit))
            .field("/gpus", "in use or not yet scrubbed may be at most twice the quota")
            .hint("wait until the GPUs of closed workspaces are scrubbed")
            .retryAfter(kTryAgain);
    }
    /// Throws if a tenant for whom the quota of `name` applies holds more than `spec` allows.
    void requireCovers(const std::string& name, const QuotaSpec& spec) const
        HEARTH_REQUIRES(mutex) {
        for (const auto& [tenant, held] : uses) {
            const bool holds = tenant == name || (name == kDefaultQuota && !specs.contains(tenant));
            if (holds) requireCoversOne(tenant, held, spec);
        }
    }
    static void requireCoversOne(const std::string& tenant, const QuotaUse& held,
                                 const QuotaSpec& spec) {
        Error error(ErrorCode::InvalidSpec,
                    "tenant " + tenant + " holds more than this quota allows");
        for (const Dimension& each : kDimensions) {
            const std::optional<std::uint64_t>& limit = spec.*each.limit;
            if (!limit || held.*each.use <= *limit) continue;
            error.field(std::string("/") + each.name, "is " + amount(each, *limit) +
                                                          ", but tenant " + tenant + " uses " +
                                                          amount(each, held.*each.use));
        }
        if (error.fields().empty()) return;
        throw error.hint("set it to at least what is in use, or end workspaces first");
    }
};

QuotaUse demandOf(const pool::SandboxLimits& limits, std::uint64_t gpus) {
    return {1, limits.milli_cpu, limits.memory_bytes, gpus, 0};
}

QuotaLedger::Hold& QuotaLedger::Hold::operator=(Hold&& other) noexcept {
    if (this == &other) return *this;
    drop();
    state_ = std::exchange(other.state_, nullptr);
    tenant_ = std::move(other.tenant_);
    use_ = other.use_;
    return *this;
}

void QuotaLedger::Hold::drop() {
    if (!state_) return;
    {
        const MutexLock lock(state_->mutex);
        state_->change(tenant_, use_, {});
    }
    state_.reset();
}

void QuotaLedger::Hold::resize(const QuotaUse& use) {
    if (!state_ || use == use_) return;
    const MutexLock lock(state_->mutex);
    state_->require(tenant_, use_, use);
    state_->change(tenant_, use_, use);
    use_ = use;
}

void QuotaLedger::Hold::correct(const QuotaUse& use) {
    if (!state_ || use == use_) return;
    const MutexLock lock(state_->mutex);
    state_->change(tenant_, use_, use);
    use_ = use;
}

QuotaLedger::QuotaLedger() : state_(std::make_shared<QuotaState>()) {}

QuotaLedger::Hold QuotaLedger::reserve(const std::string& tenant, const QuotaUse& use) {
    {
        const MutexLock lock(state_->mutex);
        state_->require(tenant, {}, use);
        state_->requireScrubbed(tenant, use.gpus);
        state_->change(tenant, {}, use);
    }
    return {state_, tenant, use};
}

std::vector<QuotaLedger::Hold> QuotaLedger::reserve(const std::string& tenant, const QuotaUse& each,
                                                    std::size_t count) {
    QuotaUse all;
    for (const Dimension& one : kDimensions) all.*one.use = each.*one.use * count;
    std::vector<Hold> holds;
    holds.reserve(count);
    {
        const MutexLock lock(state_->mutex);
        state_->require(tenant, {}, all);
        state_->requireScrubbed(tenant, all.gpus);
        state_->change(tenant, {}, all);
    }
    while (holds.size() < count) holds.push_back(Hold(state_, tenant, each));
    return holds;
}

QuotaLedger::Hold QuotaLedger::take(const std::string& tenant, const QuotaUse& use) {
    {
        const MutexLock lock(state_->mutex);
        state_->change(tenant, {}, use);
    }
    return {state_, tenant, use};
}

std::shared_ptr<void> QuotaLedger::occupy(const std::string& tenant, std::uint64_t gpus) {
    {
        const MutexLock lock(state_->mutex);
        state_->requireScrubbed(tenant, gpus);
        state_->occupied[tenant] += gpus;
    }
    return vacation(tenant, gpus);
}

std::shared_ptr<void> QuotaLedger::occupied(const std::string& tenant, std::uint64_t gpus) {
    {
        const MutexLock lock(state_->mutex);
        state_->occupied[tenant] += gpus;
    }
    return vacation(tenant, gpus);
}

std::shared_ptr<void> QuotaLedger::vacation(const std::string& tenant, std::uint64_t gpus) const {
    return {nullptr, [state = state_, tenant, gpus](void*) {
                const MutexLock lock(state->mutex);
                const auto found = state->occupied.find(tenant);
                found->second -= gpus;
                if (found->second == 0) state->occupied.erase(found);
            }};
}

void QuotaLedger::admit(const std::string& tenant, std::uint32_t claims, TimePoint now) {
    const MutexLock lock(state_->mutex);
    const QuotaSpec& spec = state_->specOf(tenant);
    if (!spec.claims_per_second) return;
    const double rate = *spec.claims_per_second;
    const std::uint32_t burst = burstOf(spec);
    if (claims > burst) {
        throw Error(ErrorCode::InvalidSpec, "this makes " + std::to_string(claims) +
                                                " claims at once, but the quota of tenant " +
                                                tenant + " allows a burst of " +
                                                std::to_string(burst))
            .field("/count", "asks for " + std::to_string(claims) + ", claimBurst is " +
                                 std::to_string(burst));
    }
    auto& buckets = state_->buckets;
    if (buckets.size() >= kSweepBucketsAt) {
        std::erase_if(buckets, [&](const auto& item) HEARTH_REQUIRES(state_->mutex) {
            const QuotaSpec& its = state_->specOf(item.first);
            if (!its.claims_per_second) return true;
            const double full = burstOf(its);
            return item.second.level(*its.claims_per_second, full, now) >= full;
        });
    }
    TokenBucket& bucket = buckets.try_emplace(tenant, burst, now).first->second;
    if (bucket.take(claims, rate, burst, now)) return;
    throw Error(ErrorCode::RateLimited, "tenant " + tenant + " claims faster than its quota of " +
                                            std::to_string(*spec.claims_per_second) +
                                            " claims per second")
        .field("/claimsPerSecond", "limit " + std::to_string(*spec.claims_per_second) +
                                       " with a burst of " + std::to_string(burst))
        .hint("try again after Retry-After")
        .retryAfter(std::max(bucket.until(claims, rate), std::chrono::seconds(1)));
}

void QuotaLedger::unadmit(const std::string& tenant, std::uint32_t claims) {
    const MutexLock lock(state_->mutex);
    const auto bucket = state_->buckets.find(tenant);
    if (bucket != state_->buckets.end()) bucket->second.giveBack(claims);
}

void QuotaLedger::set(const std::string& tenant, const std::optional<QuotaSpec>& spec) {
    const MutexLock lock(state_->mutex);
    if (spec) {
        state_->requireCovers(tenant, *spec);
        state_->assign(tenant, spec);
        return;
    }
    const auto fallback = state_->specs.find(kDefaultQuota);
    if (tenant != kDefaultQuota && fallback != state_->specs.end()) {
        QuotaState::requireCoversOne(tenant, state_->useOf(tenant), fallback->second);
    }
    state_->assign(tenant, std::nullopt);
}

void QuotaLedger::load(const std::string& tenant, const QuotaSpec& spec) {
    const MutexLock lock(state_->mutex);
    state_->assign(tenant, spec);
}

void QuotaLedger::forget(const std::string& tenant) {
    const MutexLock lock(state_->mutex);
    state_->assign(tenant, std::nullopt);
}

QuotaSpec QuotaLedger::specOf(const std::string& tenant) const {
    const MutexLock lock(state_->mutex);
    return state_->specOf(tenant);
}

std::optional<QuotaSpec> QuotaLedger::declared(const std::string& tenant) const {
    const MutexLock lock(state_->mutex);
    const auto found = state_->specs.find(tenant);
    return found == state_->specs.end() ? std::nullopt : std::optional(found->second);
}

QuotaUse QuotaLedger::useOf(const std::string& tenant) const {
    const MutexLock lock(state_->mutex);
    return state_->useOf(tenant);
}

std::vector<std::string> QuotaLedger::tenants() const {
    const MutexLock lock(state_->mutex);
    std::set<std::string> names;
    for (const auto& [name, spec] : state_->specs) names.insert(name);
    for (const auto& [name, use] : state_->uses) names.insert(name);
    return {names.begin(), names.end()};
}

std::uint32_t QuotaLedger::weightOf(const std::string& tenant) const {
    const MutexLock lock(state_->mutex);
    return state_->specOf(tenant).weight;
}

std::map<std::string, std::uint32_t> QuotaLedger::floors(const std::string& pool) const {
    const MutexLock lock(state_->mutex);
    const auto found = state_->floors.find(pool);
    return found == state_->floors.end() ? std::map<std::string, std::uint32_t>() : found->second;
}

void QuotaLedger::requireFloorsFit(const std::string& pool, std::size_t members) const {
    std::size_t sum = 0;
    for (const auto& [tenant, floor] : floors(pool)) sum += floor;
    if (sum <= members) return;
    throw Error(ErrorCode::InvalidSpec,
                "tenants are guaranteed " + std::to_string(sum) + " workspaces of pool " + pool)
        .field("/spec/limits/members",
               "is " + std::to_string(members) + ", and must be at least " + std::to_string(sum))
        .hint("lower the quotas first: hearth get quotas");
}

}  // namespace hearth::controller
