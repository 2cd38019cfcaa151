#include "controller/reconcile/PoolReconciler.h"

#include <algorithm>
#include <functional>
#include <set>

#include "base/Ids.h"
#include "controller/gpus/GpuLedger.h"
#include "controller/reconcile/sizing/Sizing.h"
#include "controller/schedule/Schedule.h"
#include "controller/spec/TemplateHash.h"

namespace hearth::controller {
namespace {

using pool::Member;
using pool::Phase;

constexpr auto kRecheck = std::chrono::seconds(30);
constexpr auto kForgetAgain = std::chrono::seconds(60);
constexpr auto kRoomAgain = std::chrono::milliseconds(200);
/// How often to look for disk room, with a waiting claim and without: the end of any pool's sandbox
/// frees room.
constexpr auto kDiskAgain = std::chrono::milliseconds(500);
constexpr auto kDiskLook = std::chrono::seconds(5);
/// How often a forecast, or the health of an index, is checked if nothing else happens.
constexpr auto kSoonAgain = std::chrono::seconds(10);
/// Sandboxes that were made together should not be renewed together: each is renewed up to a tenth
/// of the pool's maxAge earlier.
constexpr int kJitterParts = 10;

/// The age at which this sandbox is renewed. Derived from its id, so it is the same at each look.
std::chrono::nanoseconds ageLimit(const std::string& id, std::chrono::nanoseconds max_age) {
    const std::size_t draw = std::hash<std::string>{}(id) % 1'000;
    return max_age - max_age / kJitterParts * static_cast<int>(draw) / 1'000;
}

/// Added because clocks differ a little: the moment has certainly passed at the next look.
constexpr auto kMomentPassed = std::chrono::milliseconds(2);
/// A surplus sandbox retired this soon after a schedule's window is retired because of it.
constexpr auto kWindowJustEnded = std::chrono::minutes(5);
constexpr auto kClockAhead = std::chrono::hours(24);

}  // namespace

PoolReconciler::PoolReconciler(SpecStore& specs, const Supply& supply,
                               WorkspaceTerminator& terminator, Layers& layers,
                               const DiskBudget& disk, PoolStatuses& statuses,
                               const History& history)
    : specs_(specs),
      supply_(supply),
      terminator_(terminator),
      layers_(layers),
      disk_(disk),
      statuses_(statuses),
      history_(history) {}

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

ReconcileResult PoolReconciler::reconcile(const std::string& name) {
    const PoolPtr pool = specs_.find(name);
    if (!pool) {
        for (const Member& member : supply_.warm.members(name)) {
            if (isWarm(member.phase)) terminator_.retire(member, EndReason::Replaced);
        }
        forget(name);
        return ReconcileResult::settled();
    }
    if (pool->deleting) return endDeleted(*pool);
    // An ended sandbox, or a new quota, may allow a claim that had to leave sandboxes to others.
    supply_.line.limit(name, supply_.line.waiting(name) > 0 ? attainable(*pool) : SIZE_MAX);
    supply_.line.offer(name);
    if (drained() || !pool->refused.empty()) {
        publish(*pool, drained() ? PoolStatuses::Sized{} : size(*pool));
        return ReconcileResult::settled();
    }

    const Layers::View layer = layers_.want(pool->spec);
    const bool no_layer = layer.state == Layers::State::Failed;
    supply_.breaker.layer(name, no_layer ? "its packages cannot be installed: " + layer.why : "");
    if (no_layer) supply_.line.tellHopeless(name);
    if (!layer.good()) {
        // Nothing can be made yet; existing sandboxes serve and are replaced afterwards.
        publish(*pool, size(*pool));
        return ReconcileResult::after(kRecheck);
    }
    const std::string wanted = templateHash(pool->spec, layer.digest);
    const pool::WarmStock stock = supply_.warm.stock(name, wanted);
    // Each waiting claim needs a sandbox in addition to the floor.
    const PoolStatuses::Sized sized = size(*pool);
    const std::size_t floor = sized.desired;
    supply_.line.desire(name, floor);
    const std::size_t target =
        wantedUnclaimed({pool->spec, history_.clock.wall()}, floor, supply_.line.needed(name));
    std::optional<std::chrono::nanoseconds> again;
    if (stock.fresh < target) {
        const CircuitBreaker::State breaker = supply_.breaker.state(name);
        if (history_.clock.now() < breaker.retry_at) {
            again = breaker.retry_at - history_.clock.now();
        } else {
            const pool::PoolCounts counts = supply_.warm.counts(name);
            const std::size_t starting = counts.creating + counts.warming;
            const std::size_t pace =
                pool->spec.parallel_creates > starting ? pool->spec.parallel_creates - starting : 0;
            const auto fill = [&] {
                const std::size_t room = roomFor(*pool);
                // Freed room causes no event for waiting claims, so look again.
                if (room == 0 && !pool->on_demand.empty()) again = kRoomAgain;
                // A pool that has just failed is tried with one sandbox only.
                const std::size_t trust = breaker.failures > 0 ? 1 : target;
                if (!create(*pool, wanted, std::min({target - stock.fresh, pace, room, trust}))) {
                    again = supply_.line.waiting(name) > 0 ? kDiskAgain : kDiskLook;
                }
            };
            if (pool->on_demand.empty()) {
                fill();
            } else {
                const MutexLock together(on_demand_mutex_);
                fill();
            }
        }
    } else {
        supply_.breaker.room(name, "");
        supply_.breaker.gpus(name, "");
    }
    if (mayRetire(pool->spec, stock, floor)) retireStale(*pool, wanted, floor);
    publish(*pool, sized);
    const bool soon = pool->spec.sizing == SizingMode::Predictive ||
                      pool->spec.network == egress::NetworkMode::Mirror;
    return ReconcileResult::after(std::min<std::chrono::nanoseconds>(
        again.value_or(soon ? kSoonAgain : kRecheck), untilMoment(pool->spec)));
}

/// Returns the time until the schedules' next moment. Waits use another clock than schedules: a
/// jump of the wall clock is noticed at the next look, which is never far away.
std::chrono::nanoseconds PoolReconciler::untilMoment(const PoolSpec& spec) const {
    const WallTime now = history_.clock.wall();
    const std::optional<WallTime> next = nextMoment(spec.schedules, now);
    if (!next || *next - now > kRecheck) return kRecheck;
    return *next - now + kMomentPassed;
}

std::optional<TimePoint> PoolReconciler::sweepLine(const Pool& pool) {
    const WallTime wall = history_.clock.wall();
    const std::optional<Sweep> due = sweepDue(pool.spec.schedules, wall);
    if (!due) return std::nullopt;
    const MutexLock lock(swept_mutex_);
    Swept& known = swept_[pool.name];
    // The clock was far ahead for a while: the firing recorded then is discarded.
    if (known.firing > wall + kClockAhead) known = {};
    if (due->at > known.firing) known = {due->at, history_.clock.now() - (wall - due->at)};
    if (due->at < known.firing) return std::nullopt;
    return known.line;
}

EndReason PoolReconciler::shrinkReason(const PoolSpec& spec) const {
    if (spec.schedules.empty()) return EndReason::Shrink;
    const WallTime now = history_.clock.wall();
    const InForce current = inForce(spec.schedules, now);
    const bool schedule = current.entry || current.since > now - kWindowJustEnded;
    return schedule ? EndReason::Schedule : EndReason::Shrink;
}

std::size_t PoolReconciler::roomFor(const Pool& pool) {
    std::size_t members = supply_.warm.counts(pool.name).total();
    const std::size_t most = pool.spec.max_members;
    if (pool.on_demand.empty()) return most > members ? most - members : 0;
    std::vector<Member> spare;
    for (const PoolPtr& other : specs_.all()) {
        if (other->on_demand.empty() || other->name == pool.name) continue;
        members += supply_.warm.counts(other->name).total();
        if (supply_.line.waiting(other->name) > 0) continue;
        for (const Member& member : supply_.warm.members(other->name)) {
            if (member.phase == Phase::Ready) spare.push_back(member);
        }
    }
    if (members < most) return most - members;
    for (const Member& member : spare) {
        if (terminator_.retire(member, EndReason::Shrink)) break;
    }
    return 0;
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
    {
        const MutexLock lock(swept_mutex_);
        swept_.erase(name);
    }
    supply_.line.forget(name);
    supply_.forecasts.forget(name);
    history_.metrics.forgetPool(name);
    statuses_.forget(name);
}

bool PoolReconciler::mayRetire(const PoolSpec& spec, const pool::WarmStock& stock,
                               std::size_t floor) const {
    const bool stale = stock.ready > stock.fresh_ready;
    const bool old =
        spec.max_age.count() > 0 && stock.oldest &&
        history_.clock.now() - *stock.oldest > spec.max_age - spec.max_age / kJitterParts;
    return stale || old || stock.ready > floor || sweepDue(spec.schedules, history_.clock.wall());
}

void PoolReconciler::retireStale(const Pool& pool, const std::string& wanted, std::size_t floor) {
    std::vector<Member> ready = supply_.warm.members(pool.name);
    std::erase_if(ready, [](const Member& member) { return member.phase != Phase::Ready; });
    std::sort(ready.begin(), ready.end(),
              [](const Member& a, const Member& b) { return a.created_at < b.created_at; });
    auto fresh = static_cast<std::size_t>(
        std::count_if(ready.begin(), ready.end(),
                      [&](const Member& member) { return member.template_hash == wanted; }));
    const TimePoint now = history_.clock.now();
    const WarmRange range = rangeNow({pool.spec, history_.clock.wall()});
    const bool scheduled = inForce(pool.spec.schedules, history_.clock.wall()).entry.has_value();
    const EndReason shrink = shrinkReason(pool.spec);
    const std::optional<TimePoint> line = sweepLine(pool);
    std::size_t swept = 0;
    std::size_t left = ready.size();
    for (const Member& member : ready) {
        const bool stale = member.template_hash != wanted;
        const bool old = pool.spec.max_age.count() > 0 &&
                         now - member.created_at > ageLimit(member.id, pool.spec.max_age);
        if (stale) {
            // Replaced as the new ones arrive; a claim may still take it meanwhile.
            if ((fresh >= floor || left > floor) && terminator_.retire(member, EndReason::Replaced))
                --left;
        } else if (old) {
            // One at a time below the floor: the next goes when its replacement is ready.
            if (left >= floor && terminator_.retire(member, EndReason::Age)) --left, --fresh;
        } else if (line && member.created_at < *line) {
            if (terminator_.retire(member, EndReason::Schedule)) --left, --fresh, ++swept;
        } else if (left > floor && supply_.line.waiting(pool.name) == 0 &&
                   (now - member.created_at > kSurplusKept || (scheduled && left > range.max))) {
            if (terminator_.retire(member, shrink)) --left, --fresh;
        }
    }
    if (swept > 0) {
        history_.events.publish({.type = "pool.swept",
                                 .resource = pool.name,
                                 .pool = pool.name,
                                 .reason = kEndReasons.of(EndReason::Schedule),
                                 .message = "a schedule has retired " + std::to_string(swept) +
                                            " warm sandboxes, which are replaced"});
        supply_.work.add({WorkKind::Pool, pool.name});
    }
}

bool PoolReconciler::create(const Pool& pool, const std::string& wanted, std::size_t count) {
    if (pool.spec.gpu.count == 0) supply_.breaker.gpus(pool.name, "");
    for (std::size_t i = 0; i < count; ++i) {
        Member member;
        member.id = newId("sb_");
        member.pool = pool.name;
        member.template_hash = wanted;
        member.generation = pool.generation;
        member.image = pool.spec.image;
        member.limits = pool.spec.limits;
        if (pool.spec.storage == pool::Storage::Disk) {
            member.disk_bytes = pool.spec.limits.workspace_bytes;
        }
        member.created = history_.clock.wall();
        member.created_at = history_.clock.now();
        if (pool.spec.gpu.count > 0) {
            GpuLedger::Taken taken =
                supply_.gpus.take(member.id, pool.name, pool.spec.gpu, gpusKept(pool));
            supply_.breaker.gpus(pool.name, taken.lack);
            member.gpus = std::move(taken.uuids);
            if (member.gpus.empty()) {
                if (!giveUpStale(pool, wanted)) giveUpSpare(pool);
                return false;
            }
        }
        const DiskBudget::Room room = disk_.roomFor(member.disk_bytes, supply_.warm.promisedDisk());
        const std::string id = member.id;
        const std::uint64_t bytes = member.disk_bytes;
        if (!room.refusal.empty() || !supply_.warm.addWithin(std::move(member), room.most)) {
            supply_.gpus.drop(id);
            // Another pool may have taken the room since it was computed.
            supply_.breaker.room(pool.name,
                                 room.refusal.empty()
                                     ? disk_.roomFor(bytes, supply_.warm.promisedDisk()).refusal
                                     : room.refusal);
            return false;
        }
        supply_.breaker.room(pool.name, "");
        history_.log.debug("sandbox.creating", {{"sandbox", id}, {"pool", pool.name}});
        supply_.work.add({WorkKind::Create, id, pool.name});
    }
    return true;
}

std::size_t PoolReconciler::attainable(const Pool& pool) const {
    const std::size_t claimed = supply_.warm.counts(pool.name).claimed;
    const std::size_t members = pool.spec.max_members;
    const std::size_t most = std::min(mostUnclaimed({pool.spec, history_.clock.wall()}),
                                      members - std::min(members, claimed));
    if (pool.spec.gpu.count == 0) return most;
    std::set<pool::SandboxId> holders;
    for (const auto& [id, uuids] : supply_.gpus.leases()) {
        const std::optional<Member> member = supply_.warm.find(id);
        if (!member || member->phase == Phase::Claimed) holders.insert(id);
    }
    return std::min(most, supply_.gpus.attainable(pool.spec.gpu, holders) / pool.spec.gpu.count);
}

std::size_t PoolReconciler::servable(const Pool& pool) const {
    const std::size_t needed = supply_.line.needed(pool.name);
    return needed == 0 ? 0 : std::min(needed, attainable(pool));
}

std::size_t PoolReconciler::gpusKept(const Pool& pool) const {
    if (servable(pool) > 0) return 0;
    std::size_t kept = 0;
    for (const PoolPtr& other : specs_.all()) {
        if (other->spec.gpu.count == 0 || other->name == pool.name) continue;
        const std::size_t waiting = servable(*other);
        if (waiting == 0 || !supply_.gpus.overlap(other->spec.gpu, pool.spec.gpu)) continue;
        const pool::PoolCounts counts = supply_.warm.counts(other->name);
        const std::size_t coming = counts.creating + counts.warming;
        if (waiting > coming) kept += (waiting - coming) * other->spec.gpu.count;
    }
    return kept;
}

bool PoolReconciler::giveUpStale(const Pool& pool, const std::string& wanted) {
    std::vector<Member> stale;
    for (const Member& member : supply_.warm.members(pool.name)) {
        if (member.gpus.empty()) continue;
        if (member.phase == Phase::Draining) return true;  // one after the other
        if (member.phase == Phase::Ready && member.template_hash != wanted) stale.push_back(member);
    }
    if (stale.empty()) return false;
    if (supply_.gpus.coming(pool.spec.gpu) >= pool.spec.gpu.count) return true;
    return terminator_.retire(stale.front(), EndReason::Replaced);
}

void PoolReconciler::giveUpSpare(const Pool& pool) {
    const std::size_t waiting = servable(pool);
    if (waiting == 0 || supply_.gpus.coming(pool.spec.gpu) >= waiting * pool.spec.gpu.count) return;
    for (const PoolPtr& other : specs_.all()) {
        if (other->spec.gpu.count == 0 || other->name == pool.name) continue;
        if (servable(*other) > 0) continue;
        for (const Member& member : supply_.warm.members(other->name)) {
            const bool spare =
                member.phase == Phase::Ready && supply_.gpus.fits(member.id, pool.spec.gpu);
            if (spare && terminator_.retire(member, EndReason::Shrink)) return;
        }
    }
}

void PoolReconciler::publish(const Pool& pool, const PoolStatuses::Sized& sized) {
    statuses_.publish(pool, sized, !drained());
    publishDisk();
}

void PoolReconciler::publishDisk() {
    const std::uint64_t promised = supply_.warm.promisedDisk();
    const std::uint64_t most = disk_.roomFor(0, promised).most;
    history_.metrics.workspaceDisk(static_cast<double>(promised),
                                   most == UINT64_MAX ? 0 : static_cast<double>(most));
}

void PoolReconciler::drain() {
    Refill before = Refill::On;
    refill_.compare_exchange_strong(before, Refill::Drained);
    supply_.line.suspend(
        Error(ErrorCode::Unavailable,
              "the server was drained, and its pools stay empty until an operator undrains it")
            .hint("claims are served again after `hearth undrain` or after the server's next start")
            .unlessMended());
    lookAtAll();
}

void PoolReconciler::undrain() {
    Refill before = Refill::Drained;
    if (!refill_.compare_exchange_strong(before, Refill::On)) return;
    supply_.line.suspend(std::nullopt);
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
