#include "controller/queue/CircuitBreaker.h"

#include <algorithm>
#include <utility>

namespace hearth::controller {
namespace {

constexpr auto kFirstDelay = std::chrono::milliseconds(500);
constexpr auto kLastDelay = std::chrono::seconds(60);
constexpr double kNewShare = 0.2;

}  // namespace

void CircuitBreaker::succeeded(const std::string& pool, std::chrono::nanoseconds took) {
    const MutexLock lock(mutex_);
    State& state = states_[pool];
    state.failures = 0;
    state.retry_at = {};
    state.failure.clear();
    state.full = false;
    judge(state);
    state.start_seconds += kNewShare * (toSeconds(took) - state.start_seconds);
}

void CircuitBreaker::judge(State& state) {
    state.reason = state.no_layer           ? state.layer
                   : !state.no_room.empty() ? state.no_room
                                            : state.failure;
}

void CircuitBreaker::failed(const std::string& pool, const std::string& reason, bool full) {
    const MutexLock lock(mutex_);
    State& state = states_[pool];
    const auto delay = std::min<std::chrono::nanoseconds>(
        kFirstDelay * (1U << std::min(state.failures, 10U)), kLastDelay);
    ++state.failures;
    state.retry_at = clock_.now() + delay;
    state.failure = reason;
    state.full = full;
    endUnpacking(state);
    judge(state);
}

void CircuitBreaker::room(const std::string& pool, const std::string& refusal) {
    const MutexLock lock(mutex_);
    if (refusal.empty() && !states_.contains(pool)) return;
    State& state = states_[pool];
    state.no_room = refusal;
    judge(state);
}

void CircuitBreaker::gpus(const std::string& pool, const std::string& lack) {
    const MutexLock lock(mutex_);
    if (lack.empty() && !states_.contains(pool)) return;
    states_[pool].no_gpus = lack;
}

bool CircuitBreaker::unpacking(const std::string& pool, const std::string& image) {
    const MutexLock lock(mutex_);
    if (image.empty() && !states_.contains(pool)) return false;
    State& state = states_[pool];
    if (state.unpacking == image) return false;
    endUnpacking(state);
    state.unpacking = image;
    return true;
}

bool CircuitBreaker::unpacksSince(const std::string& pool, TimePoint since) const {
    const MutexLock lock(mutex_);
    const auto found = states_.find(pool);
    if (found == states_.end()) return false;
    return !found->second.unpacking.empty() || found->second.unpacked_at >= since;
}

void CircuitBreaker::endUnpacking(State& state) {
    if (std::exchange(state.unpacking, {}).empty()) return;
    state.unpacked_at = clock_.now();
}

void CircuitBreaker::layer(const std::string& pool, const std::string& failure) {
    const MutexLock lock(mutex_);
    if (failure.empty() && !states_.contains(pool)) return;
    State& state = states_[pool];
    if (failure.empty() && !state.no_layer) return;
    state.no_layer = !failure.empty();
    state.layer = failure;
    judge(state);
}

bool CircuitBreaker::prewarmed(const std::string& pool, const std::string& missing) {
    const MutexLock lock(mutex_);
    State& state = states_[pool];
    const bool news = state.prewarm ? *state.prewarm != missing : !missing.empty();
    state.prewarm = missing;
    return news;
}

void CircuitBreaker::forget(const std::string& pool) {
    const MutexLock lock(mutex_);
    states_.erase(pool);
}

CircuitBreaker::State CircuitBreaker::state(const std::string& pool) const {
    const MutexLock lock(mutex_);
    const auto found = states_.find(pool);
    return found == states_.end() ? State{} : found->second;
}

}  // namespace hearth::controller
