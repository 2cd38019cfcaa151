#include "controller/workspaces/WorkspaceAccess.h"

#include "base/Units.h"
#include "controller/workspaces/SandboxUse.h"

namespace hearth::controller {
namespace {

Error goneError(const std::string& id, const std::string& reason, std::int64_t at_ms) {
    const std::optional<EndReason> known = kEndReasons.find(reason);
    return Error(ErrorCode::Gone,
                 "workspace " + id + " has ended: " + (known ? kEndSentences.of(*known) : reason))
        .ended(reason, formatUnixMillis(at_ms))
        .hint("open a new one");
}

}  // namespace

WorkspaceAccess::WorkspaceAccess(WorkspaceTable& table, WorkspaceTerminator& terminator,
                                 pool::SandboxRuntime& runtime, Pauser& pauser,
                                 const History& history)
    : table_(table),
      terminator_(terminator),
      runtime_(runtime),
      pauser_(pauser),
      history_(history) {}

bool WorkspaceAccess::sees(const Principal& who, const std::string& tenant) {
    return tenant == who.tenant || who.atLeast(Role::Operator);
}

std::shared_ptr<Workspace> WorkspaceAccess::require(const Principal& who, const std::string& id) {
    std::shared_ptr<Workspace> workspace = table_.find(id);
    if (!who.workspace.empty() && who.workspace != id) {
        throw Error(ErrorCode::NotFound, "no workspace " + id);
    }
    if (!workspace || workspace->facts().tenant != who.tenant) explainMissing(who, id);
    return workspace;
}

std::shared_ptr<Workspace> WorkspaceAccess::requireVisible(const Principal& who,
                                                           const std::string& id) {
    if (who.atLeast(Role::Admin)) {
        if (std::shared_ptr<Workspace> workspace = table_.find(id)) return workspace;
    }
    return require(who, id);
}

std::optional<WorkspaceTable::Ended> WorkspaceAccess::endOf(const std::string& id) const {
    const std::shared_ptr<Workspace> workspace = table_.find(id);
    if (!workspace) return table_.ended(id);
    const std::optional<EndReason> reason = workspace->endReason();
    if (!reason) return std::nullopt;
    return WorkspaceTable::Ended{id, workspace->facts().tenant, *reason,
                                 toUnixMillis(history_.clock.wall())};
}

void WorkspaceAccess::explainMissing(const Principal& who, const std::string& id) {
    const std::optional<WorkspaceTable::Ended> end = endOf(id);
    if (end && sees(who, end->tenant)) throw goneError(id, kEndReasons.of(end->reason), end->at_ms);
    const std::optional<WorkspaceRecord> past = history_.journal.workspace(id);
    if (!past || !sees(who, past->tenant)) throw Error(ErrorCode::NotFound, "no workspace " + id);
    if (!past->ended_ms && table_.expectedWorkspace(id)) throw silentError(id);
    if (!past->ended_ms && table_.find(id)) throw Error(ErrorCode::NotFound, "no workspace " + id);
    throw goneError(id, past->reason.empty() ? kEndReasons.of(EndReason::Lost) : past->reason,
                    past->ended_ms.value_or(toUnixMillis(history_.clock.wall())));
}

void WorkspaceAccess::explainMissingContext(const std::string& tenant, const std::string& id) {
    const std::optional<ContextRecord> past = history_.journal.context(id);
    if (!past || past->tenant != tenant) throw Error(ErrorCode::NotFound, "no context " + id);
    std::string reason = past->reason;
    if (reason.empty())
        reason = endOf(past->workspace) ? "workspace" : kEndReasons.of(EndReason::Lost);
    throw Error(ErrorCode::Gone, "context " + id + " has ended: " + reason)
        .ended(reason, formatUnixMillis(past->ended_ms.value_or(past->created_ms)))
        .hint("make a new one in its workspace");
}

Awake WorkspaceAccess::awake(const std::shared_ptr<Workspace>& workspace) {
    Awake held = pauser_.awake(workspace);
    if (workspace->silentSince()) throw silentError(workspace->facts().id);
    return held;
}

void WorkspaceAccess::throwUnanswered(const Workspace& workspace, const agent::AgentLost& loss) {
    const WorkspaceFacts& facts = workspace.facts();
    if (loss.loss() == agent::Loss::Late) {
        throw Error(ErrorCode::Deadline, "the workspace's sandbox did not answer in time")
            .hint("its files are kept; check whether the call took effect, then try again");
    }
    terminator_.unanswered(facts.sandbox, loss);
    if (workspace.active()) {
        // An ended sandbox is reported at once; a runtime that does not know leaves it open.
        try {
            const std::optional<pool::SandboxInfo> info = runtime_.find(facts.sandbox);
            if (!info || !info->alive) terminator_.lost(facts.sandbox, pool::wordsOfEnd(info));
        } catch (const std::exception&) {
            throw silentError(facts.id);
        }
    }
    const std::optional<EndReason> end = workspace.endReason();
    if (!end) throw silentError(facts.id);
    const std::int64_t now_ms = toUnixMillis(history_.clock.wall());
    if (*end != EndReason::Lost && *end != EndReason::Oom)  // its agent went with it
        throw goneError(facts.id, kEndReasons.of(*end), now_ms);
    throw Error(ErrorCode::SandboxLost, "the workspace's sandbox has ended")
        .hint("open a new workspace");
}

std::optional<pool::SandboxUsage> WorkspaceAccess::used(const Workspace& workspace,
                                                        const agent::AgentUsage& told) {
    std::optional<pool::SandboxUsage> use = runtime_.usage(workspace.facts().sandbox);
    return use || !runtime_.inCluster() ? use : toldUse(told);
}

}  // namespace hearth::controller
