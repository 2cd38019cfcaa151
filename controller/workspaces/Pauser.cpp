#include "controller/workspaces/Pauser.h"

namespace hearth::controller {

Pauser::Pauser(WorkspaceTable& table, WorkspaceTerminator& terminator,
               pool::SandboxRuntime& runtime, WorkQueue& work, const History& history)
    : table_(table), terminator_(terminator), runtime_(runtime), work_(work), history_(history) {}

Awake Pauser::awake(const std::shared_ptr<Workspace>& workspace) {
    const TimePoint begin = history_.clock.now();
    switch (workspace->gate().hold([&] { return runtime_.thaw(workspace->facts().sandbox); })) {
        case PauseGate::Held::Awake:
            break;
        case PauseGate::Held::No:
            throw Error(ErrorCode::Unavailable, "the workspace is paused and cannot be resumed")
                .retryAfter(std::chrono::seconds(1))
                .hint("try again; if that goes on, ask the operator to look at the server's log");
        case PauseGate::Held::Resumed:
            workspace->touch(history_.clock.now());
            history_.metrics.resumed(workspace->facts().pool,
                                     toSeconds(history_.clock.now() - begin));
            tell(*workspace, false);
    }
    return Awake(workspace);
}

void Pauser::soon(const Workspace& workspace) {
    work_.add({WorkKind::Pause, workspace.facts().id, workspace.facts().tenant});
}

ReconcileResult Pauser::pause(const std::string& id) {
    const std::shared_ptr<Workspace> workspace = table_.find(id);
    if (!workspace || workspace->gate().paused()) return ReconcileResult::settled();
    const pool::SandboxId& sandbox = workspace->facts().sandbox;
    const auto idle = [&] { return workspace->due(history_.clock.now()) == EndReason::Idle; };
    switch (workspace->gate().pause(idle, [&] { return runtime_.freeze(sandbox); })) {
        case PauseGate::Pause::InUse:
            break;
        case PauseGate::Pause::Done:
            history_.metrics.paused(workspace->facts().pool);
            tell(*workspace, true);
            break;
        case PauseGate::Pause::Failed:
            history_.log.warn(
                "workspace.not_paused",
                {{"workspace", id}, {"sandbox", sandbox}, {"pool", workspace->facts().pool}});
            terminator_.reclaim(workspace, EndReason::Idle, history_.clock.now());
    }
    return ReconcileResult::settled();
}

void Pauser::tell(const Workspace& workspace, bool paused) const {
    const WorkspaceFacts& facts = workspace.facts();
    const char* const type = paused ? "workspace.paused" : "workspace.resumed";
    history_.events.publish({.type = type,
                             .resource = facts.id,
                             .pool = facts.pool,
                             .tenant = facts.tenant,
                             .reason = paused ? "idle" : "called",
                             .message = paused ? "the idle workspace is paused until the next call"
                                               : "a call resumed the workspace"});
    history_.log.debug(type,
                       {{"workspace", facts.id}, {"sandbox", facts.sandbox}, {"pool", facts.pool}});
}

void Pauser::publish(const std::map<std::string, std::size_t>& paused) {
    for (auto& [pool, count] : published_) {
        if (!paused.contains(pool) && count != 0) {
            count = 0;
            history_.metrics.pausedWorkspaces(pool, 0);
        }
    }
    for (const auto& [pool, count] : paused) {
        if (std::size_t& known = published_[pool]; known != count) {
            known = count;
            history_.metrics.pausedWorkspaces(pool, static_cast<double>(count));
        }
    }
}

}  // namespace hearth::controller
