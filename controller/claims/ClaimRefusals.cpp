#include <algorithm>
#include <cmath>

#include "controller/claims/ClaimQueue.h"

/// The refusals of ClaimQueue, and the Retry-After of each.
namespace hearth::controller {
namespace {

/// The Retry-After if it is not known when something changes.
constexpr auto kDegradedAgain = std::chrono::seconds(5);

}  // namespace

std::chrono::seconds ClaimQueue::wholeSeconds(double seconds, double most) {
    return std::chrono::seconds(
        std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(std::min(seconds, most)))));
}

bool ClaimQueue::mayComeFree(const Pool& pool) const {
    const CircuitBreaker::State state = breaker_.state(pool.name);
    // When one of its sandboxes ends, the next one gets its room on the disk.
    return pool.refused.empty() && !state.no_layer && !state.no_room.empty() &&
           !state.createsFail() && warm_.counts(pool.name).total() > 0;
}

bool ClaimQueue::waitsInVain(const std::string& pool) const {
    const CircuitBreaker::State state = breaker_.state(pool);
    if (state.no_layer) return true;
    const pool::PoolCounts counts = warm_.counts(pool);
    return state.createsFail() && counts.ready + counts.claimed == 0;
}

bool ClaimQueue::degraded(const Pool& pool) const {
    return !pool.refused.empty() || breaker_.state(pool.name).degraded();
}

void ClaimQueue::refuseDegraded(const Pool& pool, const Claimant& claimant) const {
    const std::string what = "pool " + pool.name + " cannot make sandboxes at the moment";
    const CircuitBreaker::State state = breaker_.state(pool.name);
    const std::string& why = pool.refused.empty() ? state.reason : pool.refused;
    if (pool.refused.empty() && state.diskFull()) {
        throw Error(ErrorCode::DiskFull,
                    what + ": " + (claimant.tell_why ? why : "the disk has no room for another"))
            .hint(
                "close workspaces you no longer need; an operator can free disk space or raise "
                "--disk-overcommit");
    }
    // At that time a failed create is retried, and takes as long as others did.
    std::chrono::seconds again = kDegradedAgain;
    if (const TimePoint now = clock_.now(); pool.refused.empty() && state.retry_at > now) {
        again =
            wholeSeconds(toSeconds(state.retry_at - now) + state.start_seconds, kLongestRetryAfter);
    }
    if (!claimant.tell_why || why.empty()) {
        throw Error(ErrorCode::PoolDegraded, what)
            .hint("an operator can see the reason in the pool's Degraded condition")
            .retryAfter(again);
    }
    throw Error(ErrorCode::PoolDegraded, what + ": " + why)
        .hint("the pool recovers by itself once that is fixed")
        .retryAfter(again);
}

std::shared_ptr<void> ClaimQueue::placeFor(const std::string& tenant) {
    if (std::shared_ptr<void> place = places_.take(tenant)) return place;
    if (places_.hasItsShare(tenant)) {
        throw Error(ErrorCode::RateLimited, "tenant " + tenant + " has " +
                                                std::to_string(places_.held(tenant)) +
                                                " claims waiting, the most that a tenant may have")
            .hint("wait until some of them are answered")
            .retryAfter(untilPlace(tenant));
    }
    throw Error(ErrorCode::Unavailable, "too many claims wait on this server")
        .hint("try again after Retry-After")
        .retryAfter(untilPlace(std::nullopt));
}

std::optional<double> ClaimQueue::secondsTo(const std::string& pool, std::size_t place,
                                            std::size_t max_members,
                                            std::size_t parallel_creates) const {
    const pool::PoolCounts counts = warm_.counts(pool);
    const std::size_t room = max_members - std::min(max_members, counts.total());
    if (place <= counts.creating + counts.warming + room) {
        const double rounds =
            std::ceil(static_cast<double>(place) / static_cast<double>(parallel_creates));
        return rounds * breaker_.state(pool).start_seconds;
    }
    const auto line = lines_.find(pool);  // the pool is at its limit: another claim must end first
    if (line == lines_.end() || !line->second.every_secs) return std::nullopt;
    return static_cast<double>(place) * *line->second.every_secs;
}

std::chrono::seconds ClaimQueue::againIn(const Pool& pool) const {
    const auto line = lines_.find(pool.name);
    const std::size_t waiting = line == lines_.end() ? 0 : line->second.waiters.size();
    // It is unknown how long others keep their sandboxes: at least one start for each in line.
    const double seconds =
        secondsTo(pool.name, waiting + 1, pool.spec.max_members, pool.spec.parallel_creates)
            .value_or(static_cast<double>(waiting + 1) * breaker_.state(pool.name).start_seconds /
                      static_cast<double>(pool.spec.parallel_creates));
    const auto most = pool.spec.on_empty == OnEmpty::Fail
                          ? static_cast<double>(RefusedTurns::kLongestRetryAfter.count())
                          : kLongestRetryAfter;
    return wholeSeconds(seconds, most);
}

void ClaimQueue::refuseTurn(const Pool& pool, const std::string& tenant, std::size_t count) {
    lines_[pool.name].refused.refused(tenant, quotas_.weightOf(tenant), againIn(pool),
                                      clock_.now());
    refuse(pool, warm_.counts(pool.name).ready >= count ? "; other tenants come first" : "");
}

void ClaimQueue::refuse(const Pool& pool, const std::string& more) const {
    const pool::PoolCounts counts = warm_.counts(pool.name);
    const CircuitBreaker::State breaker = breaker_.state(pool.name);
    const auto line = lines_.find(pool.name);
    const std::size_t waiting = line == lines_.end() ? 0 : line->second.waiters.size();
    throw Error(ErrorCode::PoolExhausted,
                "pool " + pool.name + " has no free sandbox: " + std::to_string(counts.ready) +
                    " ready, " + std::to_string(counts.claimed) + " claimed, " +
                    std::to_string(waiting) + " waiting" +
                    (breaker.no_gpus.empty() ? "" : "; the next one waits for GPUs") + more)
        .hint(
            "try again after Retry-After, close workspaces you no longer need, or ask the "
            "operator for a larger pool")
        .retryAfter(againIn(pool));
}

}  // namespace hearth::controller
