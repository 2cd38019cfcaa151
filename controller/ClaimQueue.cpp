#include "controller/ClaimQueue.h"

#include <algorithm>
#include <cmath>

namespace hearth::controller {

ClaimQueue::ClaimQueue(pool::WarmPool& warm, WorkQueue& work, const Breaker& breaker,
                       metrics::Metrics& metrics, const Clock& clock)
    : warm_(warm), work_(work), breaker_(breaker), metrics_(metrics), clock_(clock) {}

pool::Member ClaimQueue::acquire(const Pool& pool, const Claimant& claimant) {
    std::unique_lock lock(mutex_);
    refuseClosed();
    const Patience& patience = claimant.patience;
    if (patience.stop.stop_requested()) throw takenBack();
    Line& line = lines_[pool.name];
    // Who was served and has not woken yet waits for nothing: behind it, with sandboxes ready and
    // the pool full, nobody would be served any more.
    const bool nobody_waits = std::all_of(
        line.begin(), line.end(), [](const Waiter* waiter) { return waiter->member.has_value(); });
    if (nobody_waits) {
        if (auto member = warm_.claim(pool.name, claimant.workspace, claimant.tenant)) {
            return *std::move(member);
        }
    }
    const bool hopeless = degraded(pool);
    const bool full = pool.spec.on_empty == OnEmpty::Fail || line.size() >= pool.spec.max_queue;
    if (!patience.waits && !hopeless && !full) throw MustWait("a sandbox of pool " + pool.name);
    metrics_.poolExhausted(pool.name);
    if (hopeless) refuseDegraded(pool, claimant);
    if (full) refuse(pool, line.size());

    Waiter self;
    self.claimant = &claimant;
    line.push_back(&self);
    metrics_.claimQueueDepth(pool.name, static_cast<double>(line.size()));
    const TimePoint begin = clock_.now();
    work_.add({"pool", pool.name});  // the reconciler counts who waits
    self.wake.wait_for(lock, patience.stop, std::min(pool.spec.max_wait, patience.most), [&] {
        return self.member || closed_ || breaker_.state(pool.name).no_layer;
    });
    line.erase(std::remove(line.begin(), line.end(), &self), line.end());
    metrics_.claimQueueDepth(pool.name, static_cast<double>(line.size()));
    metrics_.claimQueued(pool.name, toSeconds(clock_.now() - begin));
    if (patience.stop.stop_requested()) {
        if (self.member && warm_.giveBack(self.member->id)) serve(pool.name);
        work_.add({"pool", pool.name});  // which may be on its way out, or declared otherwise
        throw takenBack();
    }
    if (self.member) return *std::move(self.member);
    refuseClosed();
    if (degraded(pool)) refuseDegraded(pool, claimant);
    refuse(pool, line.size());
}

void ClaimQueue::offer(const std::string& pool) {
    const std::lock_guard lock(mutex_);
    serve(pool);
}

void ClaimQueue::serve(const std::string& pool) {
    const auto found = lines_.find(pool);
    if (found == lines_.end()) return;
    for (Waiter* waiter : found->second) {
        if (waiter->member) continue;  // served, but has not woken yet
        waiter->member = warm_.claim(pool, waiter->claimant->workspace, waiter->claimant->tenant);
        if (!waiter->member) return;
        waiter->wake.notify_one();
    }
}

void ClaimQueue::tellHopeless(const std::string& pool) {
    const std::lock_guard lock(mutex_);
    const auto found = lines_.find(pool);
    if (found == lines_.end()) return;
    for (Waiter* waiter : found->second) waiter->wake.notify_one();
}

bool ClaimQueue::degraded(const Pool& pool) const {
    return !pool.refused.empty() || breaker_.state(pool.name).degraded();
}

void ClaimQueue::refuseDegraded(const Pool& pool, const Claimant& claimant) const {
    const std::string what = "pool " + pool.name + " cannot make sandboxes at the moment";
    const std::string why = pool.refused.empty() ? breaker_.state(pool.name).reason : pool.refused;
    if (!claimant.tell_why || why.empty()) {
        throw Error(ErrorCode::PoolDegraded, what)
            .hint("an operator finds the reason in the pool's Degraded condition")
            .retryAfter(std::chrono::seconds(5));
    }
    throw Error(ErrorCode::PoolDegraded, what + ": " + why)
        .hint("the pool comes back by itself once that is mended")
        .retryAfter(std::chrono::seconds(5));
}

void ClaimQueue::refuseClosed() const {
    if (closed_) throw *closed_;
}

void ClaimQueue::close(const Error& why) {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    closed_ = why;
    for (auto& [name, line] : lines_) {
        for (Waiter* waiter : line) waiter->wake.notify_one();
    }
}

std::size_t ClaimQueue::waiting(const std::string& pool) const {
    const std::lock_guard lock(mutex_);
    const auto found = lines_.find(pool);
    if (found == lines_.end()) return 0;
    return static_cast<std::size_t>(
        std::count_if(found->second.begin(), found->second.end(),
                      [](const Waiter* waiter) { return !waiter->member; }));
}

void ClaimQueue::refuse(const Pool& pool, std::size_t waiting) const {
    const pool::PoolCounts counts = warm_.counts(pool.name);
    // Everyone before us and we need one start each, some of them side by side.
    const double seconds = static_cast<double>(waiting + 1) *
                           breaker_.state(pool.name).start_seconds /
                           static_cast<double>(pool.spec.parallel_creates);
    const auto delay = std::chrono::seconds(
        std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(std::min(seconds, 300.0)))));
    throw Error(ErrorCode::PoolExhausted,
                "pool " + pool.name + " has no free sandbox: " + std::to_string(counts.ready) +
                    " ready, " + std::to_string(counts.claimed) + " claimed, " +
                    std::to_string(waiting) + " waiting")
        .hint(
            "try again after Retry-After, close workspaces you no longer need, or ask the "
            "operator for a larger pool")
        .retryAfter(delay);
}

}  // namespace hearth::controller
