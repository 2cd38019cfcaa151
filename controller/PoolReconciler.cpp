#include "controller/PoolReconciler.h"

#include <algorithm>

#include "base/Ids.h"
#include "controller/TemplateHash.h"
#include "controller/Warmup.h"

namespace hearth::controller {
namespace {

using pool::Member;
using pool::Phase;

constexpr auto kRecheck = std::chrono::seconds(30);
constexpr auto kRoomAgain = std::chrono::milliseconds(200);
/// How long a warm sandbox above the floor is kept, so that a burst's refill is not undone at once.
constexpr auto kSurplusKept = std::chrono::seconds(60);

/// How many warm sandboxes the pool should have now. (The schedule's floor and the forecast take
/// their place here.)
std::size_t desiredWarm(const PoolSpec& spec) {
    return std::min(spec.warm_min, spec.warm_max);
}

bool isWarm(const Member& member) {
    return member.phase == Phase::Creating || member.phase == Phase::Warming ||
           member.phase == Phase::Ready;
}

}  // namespace

PoolReconciler::PoolReconciler(SpecStore& specs, pool::WarmPool& warm, ClaimQueue& claims,
                               Breaker& breaker, Endings& endings, WorkQueue& work,
                               WorkspaceTable& table, EventLog& events, metrics::Metrics& metrics,
                               Layers& layers, const PoolOutside& outside, const Clock& clock)
    : specs_(specs),
      warm_(warm),
      claims_(claims),
      breaker_(breaker),
      endings_(endings),
      work_(work),
      table_(table),
      events_(events),
      metrics_(metrics),
      layers_(layers),
      outside_(outside),
      clock_(clock) {}

ReconcileResult PoolReconciler::reconcile(const std::string& name) {
    const PoolPtr pool = specs_.find(name);
    if (!pool) {
        for (const Member& member : warm_.members(name)) {
            if (isWarm(member)) endings_.retire(member, "replaced");
        }
        return ReconcileResult::settled();
    }
    if (pool->deleting) {
        endDeleted(*pool);
        return ReconcileResult::settled();
    }
    if (!refill_ || !pool->refused.empty()) {
        publish(*pool, refill_ ? desiredWarm(pool->spec) : 0);
        return ReconcileResult::settled();
    }

    const Layers::View layer = layers_.want(pool->spec);
    const bool no_layer = layer.state == Layers::State::Failed;
    breaker_.layer(name, no_layer ? "its packages cannot be installed: " + layer.why : "");
    if (no_layer) claims_.tellHopeless(name);
    if (!layer.good()) {
        // Nothing can be made yet; what there is goes on serving, and is replaced after that.
        publish(*pool, desiredWarm(pool->spec));
        return ReconcileResult::after(kRecheck);
    }
    const std::string wanted = templateHash(pool->spec, layer.digest);
    const pool::WarmStock stock = warm_.stock(name, wanted);
    // Who waits needs a sandbox each, over and above the floor.
    const std::size_t desired = desiredWarm(pool->spec);
    const std::size_t target = std::min<std::size_t>(desired + claims_.waiting(name),
                                                     std::max<std::size_t>(pool->spec.warm_max, 1));
    std::optional<std::chrono::nanoseconds> again;
    if (stock.fresh < target) {
        const Breaker::State breaker = breaker_.state(name);
        if (clock_.now() < breaker.retry_at) {
            again = breaker.retry_at - clock_.now();
        } else {
            const pool::PoolCounts counts = warm_.counts(name);
            const std::size_t starting = counts.creating + counts.warming;
            const std::size_t pace =
                pool->spec.parallel_creates > starting ? pool->spec.parallel_creates - starting : 0;
            std::unique_lock<std::mutex> together;
            if (!pool->on_demand.empty()) together = std::unique_lock(on_demand_mutex_);
            const std::size_t room = roomFor(*pool);
            // Who makes room for it does not know who waits.
            if (room == 0 && !pool->on_demand.empty()) again = kRoomAgain;
            // A pool that has just failed is tried with one sandbox, not with all.
            const std::size_t trust = breaker.failures > 0 ? 1 : target;
            create(*pool, wanted, std::min({target - stock.fresh, pace, room, trust}));
        }
    }
    if (mayRetire(pool->spec, stock)) retireStale(*pool, wanted);
    publish(*pool, desired);
    return ReconcileResult::after(again.value_or(kRecheck));
}

std::size_t PoolReconciler::roomFor(const Pool& pool) {
    std::size_t members = warm_.counts(pool.name).total();
    const std::size_t most = pool.spec.max_members;
    if (pool.on_demand.empty()) return most > members ? most - members : 0;
    std::vector<Member> spare;
    for (const PoolPtr& other : specs_.all()) {
        if (other->on_demand.empty() || other->name == pool.name) continue;
        members += warm_.counts(other->name).total();
        if (claims_.waiting(other->name) > 0) continue;
        for (const Member& member : warm_.members(other->name)) {
            if (member.phase == Phase::Ready) spare.push_back(member);
        }
    }
    if (members < most) return most - members;
    for (const Member& member : spare) {
        if (endings_.retire(member, "shrink")) break;
    }
    return 0;
}

void PoolReconciler::endDeleted(const Pool& pool) {
    bool left = false;
    for (const Member& member : warm_.members(pool.name)) {
        left = true;
        if (isWarm(member)) endings_.retire(member, "replaced");
    }
    if (left) return publish(pool, 0);
    specs_.erase(pool.name);
    breaker_.forget(pool.name);
    metrics_.forgetPool(pool.name);
    const std::lock_guard lock(mutex_);
    status_.erase(pool.name);
}

bool PoolReconciler::mayRetire(const PoolSpec& spec, const pool::WarmStock& stock) const {
    const bool stale = stock.ready > stock.fresh_ready;
    const bool old =
        spec.max_age.count() > 0 && stock.oldest && clock_.now() - *stock.oldest > spec.max_age;
    return stale || old || stock.ready > desiredWarm(spec);
}

void PoolReconciler::retireStale(const Pool& pool, const std::string& wanted) {
    std::vector<Member> ready = warm_.members(pool.name);
    std::erase_if(ready, [](const Member& member) { return member.phase != Phase::Ready; });
    std::sort(ready.begin(), ready.end(),
              [](const Member& a, const Member& b) { return a.created_at < b.created_at; });
    const std::size_t floor = desiredWarm(pool.spec);
    auto fresh = static_cast<std::size_t>(
        std::count_if(ready.begin(), ready.end(),
                      [&](const Member& member) { return member.template_hash == wanted; }));
    const TimePoint now = clock_.now();
    std::size_t left = ready.size();
    for (const Member& member : ready) {
        const bool stale = member.template_hash != wanted;
        const bool old =
            pool.spec.max_age.count() > 0 && now - member.created_at > pool.spec.max_age;
        if (stale) {
            // Replaced as the new ones arrive; a claim may still take it meanwhile.
            if ((fresh >= floor || left > floor) && endings_.retire(member, "replaced")) --left;
        } else if (old) {
            if (endings_.retire(member, "age")) --left, --fresh;
        } else if (left > floor && now - member.created_at > kSurplusKept &&
                   claims_.waiting(pool.name) == 0) {
            if (endings_.retire(member, "shrink")) --left, --fresh;
        }
    }
}

void PoolReconciler::create(const Pool& pool, const std::string& wanted, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        Member member;
        member.id = newId("sb_");
        member.pool = pool.name;
        member.template_hash = wanted;
        member.generation = pool.generation;
        member.image = pool.spec.image;
        member.limits = pool.spec.limits;
        member.created = clock_.wall();
        member.created_at = clock_.now();
        const std::string id = member.id;
        warm_.add(std::move(member));
        work_.add({"sandbox", id});
    }
}

void PoolReconciler::publish(const Pool& pool, std::size_t desired) {
    const pool::PoolCounts counts = warm_.counts(pool.name);
    const Breaker::State breaker = breaker_.state(pool.name);
    PoolStatus next = status(pool.name);
    next.observed_generation = pool.generation;
    next.desired = static_cast<std::uint32_t>(desired);
    const bool was_degraded =
        std::any_of(next.conditions.begin(), next.conditions.end(),
                    [](const Condition& c) { return c.type == "Degraded" && c.status; });
    if (refill_) {
        setCondition(next, clock_, "Ready", counts.ready >= desired,
                     counts.ready >= desired ? "Filled" : "Filling",
                     std::to_string(counts.ready) + " of " + std::to_string(desired) + " warm");
    } else {
        setCondition(next, clock_, "Ready", false, "Drained",
                     "it stays empty until the server is started again");
    }
    setCondition(next, clock_, "Progressing", next.creating > 0,
                 next.creating > 0 ? "Creating" : "Settled",
                 std::to_string(next.creating) + " being created");
    const bool refused = !pool.refused.empty();
    const bool degraded = refused || breaker.degraded();
    const char* reason = refused            ? "SpecRefused"
                         : breaker.no_layer ? "PackagesFailed"
                         : degraded         ? "CreateFailed"
                                            : "Healthy";
    const std::string& why = refused ? pool.refused : breaker.reason;
    setCondition(next, clock_, "Degraded", degraded, reason, degraded ? why : "");
    publishPrewarm(pool, breaker, next);
    const PoolStatus before = next;
    outside_.tell(pool.spec, next);
    outside_.logNews(pool.name, before, next);
    if (degraded != was_degraded) {
        events_.publish({.type = degraded ? "pool.degraded" : "pool.recovered",
                         .resource = pool.name,
                         .pool = pool.name,
                         .reason = reason,
                         .message = why});
    }

    metrics_.poolDesired(pool.name, static_cast<double>(desired));
    metrics_.poolSandboxes(pool.name, "creating", static_cast<double>(counts.creating));
    metrics_.poolSandboxes(pool.name, "warming", static_cast<double>(counts.warming));
    metrics_.poolSandboxes(pool.name, "ready", static_cast<double>(counts.ready));
    metrics_.poolSandboxes(pool.name, "claimed", static_cast<double>(counts.claimed));
    metrics_.poolSandboxes(pool.name, "draining", static_cast<double>(counts.draining));
    metrics_.poolSandboxes(pool.name, "failed", static_cast<double>(counts.failed));
    metrics_.workspaces(pool.name, static_cast<double>(table_.countOf(pool.name)));
    const std::lock_guard lock(mutex_);
    status_[pool.name] = std::move(next);
}

void PoolReconciler::publishPrewarm(const Pool& pool, const Breaker::State& breaker,
                                    PoolStatus& status) {
    const bool packages = !pool.spec.prewarm_packages.empty() && pool.refused.empty();
    Layers::View layer = packages ? layers_.want(pool.spec) : Layers::View{};
    status.packages.reset();
    if (layer.state == Layers::State::Ready) {
        status.packages = {layer.digest, layer.lock, std::move(layer.packages)};
    }
    if (layer.state == Layers::State::Making) {
        setCondition(status, clock_, "Prewarmed", false, "InstallingPackages",
                     "its packages are being installed; no sandbox is made before that");
    } else if (layer.state == Layers::State::Failed) {
        setCondition(status, clock_, "Prewarmed", false, "PackagesFailed", layer.why);
    } else if (!layer.why.empty()) {
        setCondition(status, clock_, "Prewarmed", true, "Complete",
                     "its packages could not be resolved anew: " + layer.why);
    } else if (Warmup::wanted(pool.spec) && breaker.prewarm) {
        const bool whole = breaker.prewarm->empty();
        setCondition(status, clock_, "Prewarmed", whole, whole ? "Complete" : "Incomplete",
                     whole ? "" : *breaker.prewarm);
    } else if (packages && !Warmup::wanted(pool.spec)) {
        setCondition(status, clock_, "Prewarmed", true, "Complete", "");
    } else if (packages || !Warmup::wanted(pool.spec)) {  // there is nothing to say yet, or ever
        std::erase_if(status.conditions, [](const Condition& c) { return c.type == "Prewarmed"; });
    }
}

PoolStatus PoolReconciler::status(const std::string& name) const {
    PoolStatus status;
    {
        const std::lock_guard lock(mutex_);
        const auto found = status_.find(name);
        if (found != status_.end()) status = found->second;
    }
    count(name, status);
    return status;
}

PoolStatus PoolReconciler::firstStatus(const Pool& pool) const {
    PoolStatus known = status(pool.name);
    outside_.tell(pool.spec, known);
    return known;
}

/// What can be counted is told as it is now; the reconciler comes a little later.
void PoolReconciler::count(const std::string& name, PoolStatus& status) const {
    const pool::PoolCounts counts = warm_.counts(name);
    const auto small = [](std::size_t n) { return static_cast<std::uint32_t>(n); };
    status.ready = small(counts.ready);
    status.claimed = small(counts.claimed);
    status.creating = small(counts.creating + counts.warming);
    status.draining = small(counts.draining);
    status.failed = small(counts.failed);
    status.waiting = small(claims_.waiting(name));
}

void PoolReconciler::stopRefill() {
    refill_ = false;
    claims_.close(
        Error(ErrorCode::Unavailable,
              "the server was drained, and its pools stay empty until it is started again")
            .hint("an operator has ended its work; claims are served again after the next start")
            .unlessMended());
    for (const PoolPtr& pool : specs_.all()) work_.add({"pool", pool->name});  // told in its status
}

}  // namespace hearth::controller
