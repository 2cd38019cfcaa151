#include "controller/reconcile/SandboxReconciler.h"

#include <stdexcept>

#include "base/CrashPoint.h"

namespace hearth::controller {

SandboxReconciler::SandboxReconciler(const pool::Fleet& fleet, const Supply& supply,
                                     AgentConnector& agents, SandboxStarter& starter,
                                     WarmReconnector& reconnector, WorkspaceTerminator& terminator,
                                     UsageMeter& usage)
    : fleet_(fleet),
      supply_(supply),
      agents_(agents),
      starter_(starter),
      reconnector_(reconnector),
      terminator_(terminator),
      usage_(usage) {}

ReconcileResult SandboxReconciler::reconcile(const pool::SandboxId& id) {
    const std::optional<pool::Member> member = fleet_.warm.find(id);
    if (!member || member->phase == pool::Phase::Draining || member->phase == pool::Phase::Failed) {
        const bool warming = starter_.giveUp(id);
        if (member && member->phase == pool::Phase::Failed && warming) {
            supply_.breaker.failed(member->pool, "its agent was lost while it warmed up");
        }
        destroy(id);
        if (member) supply_.work.add({WorkKind::Pool, member->pool});
    } else if (member->phase == pool::Phase::Creating || member->phase == pool::Phase::Warming) {
        supply_.work.add({WorkKind::Create, id, member->pool});
    } else {
        look(*member);
    }
    return ReconcileResult::settled();
}

ReconcileResult SandboxReconciler::lose(const pool::SandboxId& id) {
    const std::optional<agent::AgentLost> loss = agents_.takeLoss(id);
    if (loss && !reconnector_.begin(id, *loss)) terminator_.unanswered(id, *loss);
    return reconnector_.proceed(id);
}

ReconcileResult SandboxReconciler::weigh(const pool::SandboxId& id) {
    const std::optional<pool::Member> member = fleet_.warm.find(id);
    if (!member) return ReconcileResult::settled();
    if (!fleet_.runtime.goFirst(id, member->phase == pool::Phase::Ready)) {
        throw std::runtime_error("the weight of sandbox " + id + " stayed as it was");
    }
    if (member->phase == pool::Phase::Claimed) fleet_.runtime.noteClaim(id);
    return ReconcileResult::settled();
}

void SandboxReconciler::look(const pool::Member& member) {
    const pool::SandboxId& id = member.id;
    const std::optional<pool::SandboxInfo> info = fleet_.runtime.find(id);
    if (!info || !info->alive) return terminator_.lost(id, pool::wordsOfEnd(info));
    if (info->unfit.empty() || member.phase != pool::Phase::Ready) return;
    if (terminator_.retire(member, EndReason::Node, {}, info->unfit)) {
        supply_.work.add({WorkKind::Pool, member.pool});
    }
}

void SandboxReconciler::destroy(const pool::SandboxId& id) {
    // Nothing may name a sandbox that is being destroyed.
    terminator_.lost(id, "its sandbox is being destroyed");
    const std::optional<pool::Member> member = fleet_.warm.find(id);
    usage_.settle(id, member ? member->agent : nullptr);
    crashPoint("destroy.before");
    fleet_.runtime.destroy(id);
    crashPoint("destroy.after");
    supply_.gpus.drop(id);
    agents_.takeLoss(id);
    starter_.forget(id);
    fleet_.warm.remove(id);
    fleet_.marks.clear(id);  // last: WorkspaceTerminator::retire may have marked it meanwhile
}

}  // namespace hearth::controller
