#include "api/auth/RateLimits.h"

#include <algorithm>

#include "base/Error.h"

namespace hearth::auth {
namespace {

/// Full buckets are removed when there are this many.
constexpr std::size_t kSweepAt = 1024;

}  // namespace

std::optional<RateLimits::Verdict> RateLimits::take(const std::string& tenant) const {
    if (per_second_ == 0) return std::nullopt;
    const double rate = per_second_;
    const double full = burst_;
    const TimePoint now = clock_.now();
    const MutexLock lock(mutex_);
    if (buckets_.size() >= kSweepAt) {
        std::erase_if(buckets_,
                      [&](const auto& item) { return item.second.level(rate, full, now) >= full; });
    }
    TokenBucket& bucket = buckets_.try_emplace(tenant, full, now).first->second;
    Verdict verdict;
    verdict.allowed = bucket.take(1, rate, full, now);
    verdict.limit = burst_;
    verdict.remaining = static_cast<std::uint32_t>(bucket.level(rate, full, now));
    verdict.reset = bucket.until(full, rate);
    if (!verdict.allowed) {
        verdict.retry_after = std::max(bucket.until(1, rate), std::chrono::seconds(1));
    }
    return verdict;
}

void require(const RateLimits& limits, api::Request& request, const std::string& tenant) {
    const std::optional<RateLimits::Verdict> verdict = limits.take(tenant);
    if (!verdict) return;
    request.addAnswerHeader("RateLimit-Limit", std::to_string(verdict->limit));
    request.addAnswerHeader("RateLimit-Remaining", std::to_string(verdict->remaining));
    request.addAnswerHeader("RateLimit-Reset", std::to_string(verdict->reset.count()));
    if (verdict->allowed) return;
    throw Error(ErrorCode::RateLimited,
                "tenant " + tenant + " sends more requests than its limit allows")
        .hint("Send fewer at once, and follow RateLimit-Remaining")
        .retryAfter(verdict->retry_after);
}

}  // namespace hearth::auth
