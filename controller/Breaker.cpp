#include "controller/Breaker.h"

#include <algorithm>

namespace hearth::controller {
namespace {

constexpr auto kFirstDelay = std::chrono::milliseconds(500);
constexpr auto kLastDelay = std::chrono::seconds(60);
constexpr double kNewShare = 0.2;

}  // namespace

void Breaker::succeeded(const std::string& pool, std::chrono::nanoseconds took) {
    const std::lock_guard lock(mutex_);
    State& state = states_[pool];
    state.failures = 0;
    state.retry_at = {};
    state.failure.clear();
    if (!state.no_layer) state.reason.clear();
    state.start_seconds += kNewShare * (toSeconds(took) - state.start_seconds);
}

void Breaker::failed(const std::string& pool, const std::string& reason) {
    const std::lock_guard lock(mutex_);
    State& state = states_[pool];
    const auto delay = std::min<std::chrono::nanoseconds>(
        kFirstDelay * (1U << std::min(state.failures, 10U)), kLastDelay);
    ++state.failures;
    state.retry_at = clock_.now() + delay;
    state.failure = reason;
    if (!state.no_layer) state.reason = reason;
}

void Breaker::layer(const std::string& pool, const std::string& failure) {
    const std::lock_guard lock(mutex_);
    if (failure.empty() && !states_.contains(pool)) return;
    State& state = states_[pool];
    if (failure.empty() && !state.no_layer) return;
    state.no_layer = !failure.empty();
    state.reason = failure.empty() ? state.failure : failure;
}

bool Breaker::prewarmed(const std::string& pool, const std::string& missing) {
    const std::lock_guard lock(mutex_);
    State& state = states_[pool];
    const bool news = state.prewarm ? *state.prewarm != missing : !missing.empty();
    state.prewarm = missing;
    return news;
}

void Breaker::forget(const std::string& pool) {
    const std::lock_guard lock(mutex_);
    states_.erase(pool);
}

Breaker::State Breaker::state(const std::string& pool) const {
    const std::lock_guard lock(mutex_);
    const auto found = states_.find(pool);
    return found == states_.end() ? State{} : found->second;
}

}  // namespace hearth::controller
