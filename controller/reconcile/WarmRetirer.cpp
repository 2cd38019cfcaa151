#include "controller/reconcile/WarmRetirer.h"

#include <algorithm>
#include <functional>

#include "controller/reconcile/sizing/Sizing.h"
#include "controller/schedule/Schedule.h"

namespace hearth::controller {
namespace {

using pool::Member;
using pool::Phase;

/// Sandboxes that were made together should not be renewed together: each is renewed up to a tenth
/// of the pool's maxAge earlier.
constexpr int kJitterParts = 10;
/// A surplus sandbox retired this soon after a schedule's window is retired because of it.
constexpr auto kWindowJustEnded = std::chrono::minutes(5);
constexpr auto kClockAhead = std::chrono::hours(24);

/// The age at which this sandbox is renewed. Derived from its id, so it is the same at each look.
std::chrono::nanoseconds ageLimit(const std::string& id, std::chrono::nanoseconds max_age) {
    const std::size_t draw = std::hash<std::string>{}(id) % 1'000;
    return max_age - max_age / kJitterParts * static_cast<int>(draw) / 1'000;
}

}  // namespace

void WarmRetirer::retire(const Pool& pool, const std::string& hash, const pool::WarmStock& stock,
                         std::size_t floor) {
    if (due(pool.spec, stock, floor)) retireMembers(pool, hash, floor);
}

void WarmRetirer::forget(const std::string& name) {
    const MutexLock lock(mutex_);
    sweeps_.erase(name);
}

bool WarmRetirer::due(const PoolSpec& spec, const pool::WarmStock& stock, std::size_t floor) const {
    const bool stale = stock.ready > stock.fresh_ready;
    const bool old =
        spec.max_age.count() > 0 && stock.oldest &&
        history_.clock.now() - *stock.oldest > spec.max_age - spec.max_age / kJitterParts;
    return stale || old || stock.ready > floor || sweepDue(spec.schedules, history_.clock.wall());
}

void WarmRetirer::retireMembers(const Pool& pool, const std::string& hash, std::size_t floor) {
    const std::vector<Member> ready = readyByAge(pool.name);
    auto fresh = static_cast<std::size_t>(
        std::count_if(ready.begin(), ready.end(),
                      [&](const Member& member) { return member.template_hash == hash; }));
    const TimePoint now = history_.clock.now();
    const WarmRange range = rangeNow({pool.spec, history_.clock.wall()});
    const bool scheduled = inForce(pool.spec.schedules, history_.clock.wall()).entry.has_value();
    const EndReason shrink = shrinkReason(pool.spec);
    const std::optional<TimePoint> line = sweepLine(pool);
    std::size_t swept = 0;
    std::size_t left = ready.size();
    for (const Member& member : ready) {
        const bool stale = member.template_hash != hash;
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
    if (swept > 0) publishSweep(pool.name, swept);
}

std::vector<Member> WarmRetirer::readyByAge(const std::string& name) const {
    std::vector<Member> ready = supply_.warm.members(name);
    std::erase_if(ready, [](const Member& member) { return member.phase != Phase::Ready; });
    std::sort(ready.begin(), ready.end(),
              [](const Member& a, const Member& b) { return a.created_at < b.created_at; });
    return ready;
}

EndReason WarmRetirer::shrinkReason(const PoolSpec& spec) const {
    if (spec.schedules.empty()) return EndReason::Shrink;
    const WallTime now = history_.clock.wall();
    const InForce current = inForce(spec.schedules, now);
    const bool schedule = current.entry || current.since > now - kWindowJustEnded;
    return schedule ? EndReason::Schedule : EndReason::Shrink;
}

std::optional<TimePoint> WarmRetirer::sweepLine(const Pool& pool) {
    const WallTime wall = history_.clock.wall();
    const std::optional<Sweep> due = sweepDue(pool.spec.schedules, wall);
    if (!due) return std::nullopt;
    const MutexLock lock(mutex_);
    SweepLine& known = sweeps_[pool.name];
    // The clock was far ahead for a while: the firing recorded then is discarded.
    if (known.firing > wall + kClockAhead) known = {};
    if (due->at > known.firing) known = {due->at, history_.clock.now() - (wall - due->at)};
    if (due->at < known.firing) return std::nullopt;
    return known.line;
}

void WarmRetirer::publishSweep(const std::string& name, std::size_t count) {
    history_.events.publish({.type = "pool.swept",
                             .resource = name,
                             .pool = name,
                             .reason = kEndReasons.of(EndReason::Schedule),
                             .message = "a schedule has retired " + std::to_string(count) +
                                        " warm sandboxes, which are replaced"});
    supply_.work.add({WorkKind::Pool, name});
}

}  // namespace hearth::controller
