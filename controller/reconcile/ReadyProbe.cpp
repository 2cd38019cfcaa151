#include "controller/reconcile/ReadyProbe.h"

namespace hearth::controller {
namespace {

constexpr auto kProbeEvery = std::chrono::seconds(30);
/// The pause before the next try: a machine that is busy for a moment answers late.
constexpr auto kProbeAgain = std::chrono::seconds(5);
constexpr unsigned kMostSilent = 3;

}  // namespace

ReconcileResult ReadyProbe::look() {
    for (const pool::Member& member : warm_.all()) {
        if (member.phase == pool::Phase::Ready) {
            work_.add({WorkKind::Probe, member.id, member.pool});
        }
    }
    return ReconcileResult::after(kProbeEvery);
}

ReconcileResult ReadyProbe::probe(const pool::SandboxId& id) {
    const std::optional<pool::Member> member = warm_.find(id);
    if (!member || member->phase != pool::Phase::Ready || !member->agent) {
        forget(id);
        return ReconcileResult::settled();
    }
    std::string why;
    try {
        member->agent->touch(patience_);
    } catch (const agent::AgentError&) {
        // It refuses this before a claim, so it answers.
    } catch (const agent::AgentLost& e) {
        why = e.what();
    }
    if (why.empty()) {
        forget(id);
        return ReconcileResult::settled();
    }
    unsigned times = 0;
    std::size_t silent = 0;
    {
        const MutexLock lock(mutex_);
        Silent& one = silent_[id];
        one.pool = member->pool;
        times = ++one.times;
        for (const auto& [other, known] : silent_) silent += known.pool == member->pool ? 1 : 0;
    }
    // If most are silent, the machine is busy.
    const bool busy = silent > 1 && silent * 2 > warm_.counts(member->pool).ready;
    if (times < kMostSilent || busy) return ReconcileResult::after(kProbeAgain);
    forget(id);
    if (terminator_.retire(*member, EndReason::Lost)) {
        history_.metrics.sandboxFailure(member->pool, "silent");
        history_.log.warn("sandbox.silent",
                          {{"sandbox", id}, {"pool", member->pool}, {"error", why}});
        work_.add({WorkKind::Pool, member->pool});
    }
    return ReconcileResult::settled();
}

void ReadyProbe::forget(const pool::SandboxId& id) {
    const MutexLock lock(mutex_);
    silent_.erase(id);
}

}  // namespace hearth::controller
