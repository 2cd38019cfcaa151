#include "api/auth/RateLimits.h"

#include <algorithm>
#include <cmath>

#include "base/Error.h"

namespace hearth::auth {
namespace {

/// Full buckets are thrown away when there are so many.
constexpr std::size_t kSweepAt = 1024;

std::chrono::seconds wholeSeconds(double seconds) {
    return std::chrono::seconds(static_cast<std::int64_t>(std::ceil(seconds - 1e-9)));
}

}  // namespace

std::optional<RateLimits::Verdict> RateLimits::take(const std::string& tenant) const {
    if (per_second_ == 0) return std::nullopt;
    const double rate = per_second_;
    const double full = burst_;
    const TimePoint now = clock_.now();
    /// The bucket's content at this time.
    const auto tokensOf = [&](const Bucket& bucket) {
        const double passed = std::chrono::duration<double>(now - bucket.filled_at).count();
        return std::min(full, bucket.tokens + std::max(passed, 0.0) * rate);
    };
    const MutexLock lock(mutex_);
    if (buckets_.size() >= kSweepAt) {
        std::erase_if(buckets_, [&](const auto& item) { return tokensOf(item.second) >= full; });
    }
    Bucket& bucket = buckets_.try_emplace(tenant, Bucket{full, now}).first->second;
    bucket = {tokensOf(bucket), now};
    Verdict verdict;
    verdict.allowed = bucket.tokens >= 1.0;
    if (verdict.allowed) bucket.tokens -= 1.0;
    verdict.limit = burst_;
    verdict.remaining = static_cast<std::uint32_t>(bucket.tokens);
    verdict.reset = wholeSeconds((full - bucket.tokens) / rate);
    if (!verdict.allowed) {
        verdict.retry_after =
            std::max(wholeSeconds((1.0 - bucket.tokens) / rate), std::chrono::seconds(1));
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
    throw Error(ErrorCode::RateLimited, "tenant " + tenant + " sends more requests than it may")
        .hint("Send fewer at once, and follow RateLimit-Remaining")
        .retryAfter(verdict->retry_after);
}

}  // namespace hearth::auth
