#include "controller/reconcile/PoolReconciler.h"

#include <algorithm>

#include "controller/reconcile/sizing/Sizing.h"
#include "controller/schedule/Schedule.h"
#include "controller/spec/TemplateHash.h"

namespace hearth::controller {
namespace {

using pool::Member;

constexpr auto kRecheck = std::chrono::seconds(30);
constexpr auto kForgetAgain = std::chrono::seconds(60);
/// How often a forecast, or the health of an index, is checked if nothing else happens.
constexpr auto kSoonAgain = std::chrono::seconds(10);
/// Added because clocks differ a little: the moment has certainly passed at the next look.
constexpr auto kMomentPassed = std::chrono::milliseconds(2);

/// Returns how long a pool is left alone if nothing happens.
std::chrono::nanoseconds usualPause(const PoolSpec& spec) {
    const bool soon =
        spec.sizing == SizingMode::Predictive || spec.network == egress::NetworkMode::Mirror;
    return soon ? kSoonAgain : kRecheck;
}

}  // namespace

PoolReconciler::PoolReconciler(SpecStore& specs, const Supply& supply,
                               WorkspaceTerminator& terminator, Layers& layers,
                               const DiskBudget& disk, PoolStatuses& statuses,
                               const History& history)
    : specs_(specs),
      supply_(supply),
      terminator_(terminator),
      layers_(layers),
      statuses_(statuses),
      history_(history),
      gpus_(specs, supply, terminator, history.clock),
      refiller_(specs, supply, terminator, disk, gpus_, history),
      retirer_(supply, terminator, history) {}

ReconcileResult PoolReconciler::reconcile(const std::string& name) {
    const PoolPtr pool = specs_.find(name);
    if (!pool) return endUndeclared(name);
    if (pool->deleting) return endDeleted(*pool);
    // An ended sandbox, or a new quota, may allow a claim that had to leave sandboxes to others.
    supply_.line.limit(name, supply_.line.waiting(name) > 0 ? gpus_.attainable(*pool) : SIZE_MAX);
    supply_.line.offer(name);
    if (drained() || !pool->refused.empty()) {
        publish(*pool, drained() ? PoolStatuses::Sized{} : size(*pool));
        return ReconcileResult::settled();
    }
    const std::optional<std::string> hash = templateNow(*pool);
    if (!hash) {  // nothing can be made yet; existing sandboxes serve and are replaced afterwards
        publish(*pool, size(*pool));
        return ReconcileResult::after(kRecheck);
    }
    const pool::WarmStock stock = supply_.warm.stock(name, *hash);
    const PoolStatuses::Sized sized = size(*pool);
    supply_.line.desire(name, sized.desired);
    // Each waiting claim needs a sandbox in addition to the warm ones.
    const std::size_t target = wantedUnclaimed({pool->spec, history_.clock.wall()}, sized.desired,
                                               supply_.line.needed(name));
    const std::size_t missing = target - std::min(target, stock.fresh);
    const std::optional<std::chrono::nanoseconds> again = refiller_.fill(*pool, *hash, missing);
    retirer_.retire(*pool, *hash, stock, sized.desired);
    publish(*pool, sized);
    return ReconcileResult::after(
        std::min(again.value_or(usualPause(pool->spec)), untilMoment(pool->spec)));
}

ReconcileResult PoolReconciler::endUndeclared(const std::string& name) {
    for (const Member& member : supply_.warm.members(name)) {
        if (isWarm(member.phase)) terminator_.retire(member, EndReason::Replaced);
    }
    forget(name);
    return ReconcileResult::settled();
}

ReconcileResult PoolReconciler::endDeleted(const Pool& pool) {
    bool left = false;
    for (const Member& member : supply_.warm.members(pool.name)) {
        left = true;
        if (isWarm(member.phase)) terminator_.retire(member, EndReason::Replaced);
    }
    if (left) {
        publish(pool, {});
        return ReconcileResult::settled();
    }
    specs_.erase(pool.name);
    forget(pool.name);
    // Executions that end after their answers still count for this pool, so it is forgotten again.
    return ReconcileResult::after(kForgetAgain);
}

void PoolReconciler::forget(const std::string& name) {
    supply_.breaker.forget(name);
    retirer_.forget(name);
    supply_.line.forget(name);
    supply_.forecasts.forget(name);
    history_.metrics.forgetPool(name);
    statuses_.forget(name);
}

std::optional<std::string> PoolReconciler::templateNow(const Pool& pool) {
    const Layers::View layer = layers_.want(pool.spec);
    const bool failed = layer.state == Layers::State::Failed;
    supply_.breaker.layer(pool.name,
                          failed ? "its packages cannot be installed: " + layer.why : "");
    if (failed) supply_.line.failWaiting(pool.name);
    if (!layer.good()) return std::nullopt;
    return templateHash(pool.spec, layer.digest);
}

PoolStatuses::Sized PoolReconciler::size(const Pool& pool) {
    const Moment now{history_.clock.now(), history_.clock.wall()};
    const ClaimQueue::Arrivals arrivals = supply_.line.arrivals(pool.name);
    Objective objective = objectiveOf(pool.spec);
    objective.most = rangeNow({pool.spec, now.wall}).max;
    const Forecasts::News news = supply_.forecasts.look(
        pool.name, now, objective,
        {arrivals.claims, arrivals.missed, supply_.warm.counts(pool.name).ready});
    history_.metrics.poolIdle(pool.name, news.idle_seconds);
    if (!news.recorded && !trace_failed_.exchange(true)) {
        history_.log.warn("trace.failed", {{"pool", pool.name},
                                           {"hint", "can the server write to --record-traces?"}});
    }
    return {desiredWarm({pool.spec, now.wall, news.outlook}), news.outlook};
}

std::chrono::nanoseconds PoolReconciler::untilMoment(const PoolSpec& spec) const {
    const WallTime now = history_.clock.wall();
    const std::optional<WallTime> next = nextMoment(spec.schedules, now);
    if (!next || *next - now > kRecheck) return kRecheck;
    return *next - now + kMomentPassed;
}

void PoolReconciler::publish(const Pool& pool, const PoolStatuses::Sized& sized) {
    statuses_.publish(pool, sized, !drained());
    refiller_.publishDisk();
}

void PoolReconciler::drain() {
    Refill before = Refill::On;
    refill_.compare_exchange_strong(before, Refill::Drained);
    supply_.line.setGate(
        ClaimQueue::Gate::Drained,
        Error(ErrorCode::Unavailable,
              "the server was drained, and its pools stay empty until an operator undrains it")
            .hint("claims are served again after `hearth undrain` or after the server's next start")
            .unlessMended());
    lookAtAll();
}

void PoolReconciler::undrain() {
    Refill before = Refill::Drained;
    if (!refill_.compare_exchange_strong(before, Refill::On)) return;
    supply_.line.setGate(ClaimQueue::Gate::Drained, std::nullopt);
    lookAtAll();
}

void PoolReconciler::shutDown() {
    refill_ = Refill::ShutDown;
    lookAtAll();
}

void PoolReconciler::lookAtAll() {
    for (const PoolPtr& pool : specs_.all()) supply_.work.add({WorkKind::Pool, pool->name});
}

}  // namespace hearth::controller
