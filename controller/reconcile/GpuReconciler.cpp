#include "controller/reconcile/GpuReconciler.h"

#include <algorithm>
#include <utility>

namespace hearth::controller {
namespace {

constexpr auto kGpusEvery = std::chrono::seconds(5);

}  // namespace

GpuReconciler::GpuReconciler(pool::SandboxRuntime& runtime, const Supply& supply,
                             const SpecStore& specs, WorkspaceTerminator& terminator,
                             const History& history)
    : runtime_(runtime),
      supply_(supply),
      specs_(specs),
      terminator_(terminator),
      history_(history) {}

ReconcileResult GpuReconciler::scrub(const std::string& uuid) {
    const ReconcileResult result = supply_.gpus.scrub(uuid);
    refill();
    return result;
}

ReconcileResult GpuReconciler::look() {
    const bool news = supply_.gpus.look();
    if (supply_.gpus.any()) {
        countIdle();
        retireFaulty();
        dropLost();
    }
    if (news) refill();
    return ReconcileResult::after(kGpusEvery);
}

void GpuReconciler::refill() {
    // Pools with claims in line come first; the others are filled with the rest.
    std::vector<PoolPtr> pools = specs_.all();
    std::erase_if(pools, [](const PoolPtr& pool) { return pool->spec.gpu.count == 0; });
    std::stable_partition(pools.begin(), pools.end(), [&](const PoolPtr& pool) {
        return supply_.line.waiting(pool->name) > 0;
    });
    for (const PoolPtr& pool : pools) supply_.work.add({WorkKind::Pool, pool->name});
}

void GpuReconciler::retireFaulty() {
    std::set<pool::SandboxId> now = supply_.gpus.onFaulty();
    std::set<pool::SandboxId> before;
    {
        const MutexLock lock(mutex_);
        before = std::exchange(faulty_, now);
    }
    for (const pool::SandboxId& id : now) {
        if (!before.contains(id)) continue;
        const std::optional<pool::Member> member = supply_.warm.find(id);
        if (member && isWarm(member->phase)) terminator_.retire(*member, EndReason::Replaced);
    }
}

/// Drops leases of sandboxes that a sweep removed: no other work reports those.
void GpuReconciler::dropLost() {
    for (const auto& [id, uuids] : supply_.gpus.leases()) {
        if (!supply_.warm.find(id) && !runtime_.find(id)) supply_.gpus.drop(id);
    }
}

void GpuReconciler::countIdle() {
    const TimePoint now = history_.clock.now();
    std::optional<TimePoint> before;
    {
        const MutexLock lock(mutex_);
        before = std::exchange(counted_, now);
    }
    if (!before) return;
    std::map<std::string, std::size_t> idle;
    for (const auto& [id, uuids] : supply_.gpus.leases()) {
        const std::optional<pool::Member> member = supply_.warm.find(id);
        if (member && member->phase != pool::Phase::Claimed) idle[member->pool] += uuids.size();
    }
    for (const auto& [pool, count] : idle) {
        history_.metrics.gpus().idle(pool, toSeconds(now - *before) * static_cast<double>(count));
    }
}

}  // namespace hearth::controller
