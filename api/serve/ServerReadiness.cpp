#include "api/serve/ServerReadiness.h"

namespace hearth::program {
namespace {

constexpr auto kWarmUpGrace = std::chrono::seconds(30);

}  // namespace

void ServerReadiness::begin() {
    started_at_ = plane_.foundation.clock.now();
    begun_ = true;
}

std::pair<bool, std::string> ServerReadiness::look() {
    if (stopping_ || signals_.leaving()) return {false, "stopping"};
    if (!begun_) return {false, gate_.doing()};
    if (plane_.pool_reconciler.drained()) {
        return {false, "drained; the pools stay empty until `hearth undrain` or the next start"};
    }
    if (!warmed_up_ && plane_.foundation.clock.now() - started_at_ < kWarmUpGrace) {
        for (const controller::PoolPtr& pool : plane_.specs.all()) {
            if (fills(*pool)) return {false, "pool " + pool->name + " is filling"};
        }
    }
    warmed_up_ = true;
    const std::string leftovers = plane_.orphans.condition();
    return {true, leftovers.empty() ? "ready" : "ready; " + leftovers};
}

bool ServerReadiness::fills(const controller::Pool& pool) const {
    if (!pool.refused.empty() || lacksGpus(pool)) return false;
    const controller::PoolStatus status = plane_.statuses.of(pool.name);
    return status.observed_generation == 0 ||
           plane_.warm.counts(pool.name).total() < status.desired ||
           plane_.warm.counts(pool.name).creating + plane_.warm.counts(pool.name).warming > 0;
}

bool ServerReadiness::lacksGpus(const controller::Pool& pool) const {
    return !plane_.breaker.state(pool.name).no_gpus.empty() &&
           plane_.gpus.coming(pool.spec.gpu) == 0;
}

}  // namespace hearth::program
