#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/Error.h"
#include "controller/contract/Principal.h"
#include "controller/store/History.h"
#include "controller/workspaces/AgentErrors.h"
#include "controller/workspaces/Pauser.h"
#include "controller/workspaces/WorkspaceTable.h"
#include "controller/workspaces/WorkspaceTerminator.h"
#include "pool/runtime/SandboxRuntime.h"

namespace hearth::controller {

/// Access to a tenant's workspaces: finds one, or reports what became of it, and calls its agent.
/// Thread-safe.
class WorkspaceAccess {
public:
    WorkspaceAccess(WorkspaceTable& table, WorkspaceTerminator& terminator,
                    pool::SandboxRuntime& runtime, Pauser& pauser, const History& history);

    /// True if `who` may know of the tenant's workspaces and end them.
    static bool sees(const Principal& who, const std::string& tenant);
    /// Returns the principal's active workspace, or throws the error that says what became of it.
    std::shared_ptr<Workspace> require(const Principal& who, const std::string& id);
    /// The same, but admins find every tenant's workspaces.
    std::shared_ptr<Workspace> requireVisible(const Principal& who, const std::string& id);
    QuotaLedger& quotas() { return table_.quotas(); }
    /// True if sandboxes of this tenant have not answered yet since the start.
    bool expectsOf(const std::string& tenant) const { return table_.expectsOf(tenant); }
    /// Throws Error(Gone) if it has ended, Unavailable while it does not answer, else NotFound.
    [[noreturn]] void explainMissing(const Principal& who, const std::string& id);
    /// Throws the error for a context that no workspace of the tenant has: Error(Gone) or NotFound.
    [[noreturn]] void explainMissingContext(const std::string& tenant, const std::string& id);
    /// Call before any call to its agent: resumes it if it is paused, and keeps it awake while the
    /// result lives. Error(Unavailable) if its agent is known to be silent at the moment.
    Awake awake(const std::shared_ptr<Workspace>& workspace);
    /// Call after a call without an answer: throws Error(SandboxLost) if the sandbox has ended,
    /// Deadline if only this call was late, else Unavailable, because it may still answer.
    [[noreturn]] void throwUnanswered(const Workspace& workspace, const agent::AgentLost& loss);
    /// Runs a call to the agent; refusals and silence become errors for a client. `path`: the
    /// file that the call is about, if any; `to`: the second one, if it has two.
    template <typename Call>
    auto ask(const std::shared_ptr<Workspace>& workspace, const std::string& path, Call call,
             const std::string& to = {});
    /// Returns its sandbox's usage, in a cluster as its agent reported it; nullopt if unknown.
    std::optional<pool::SandboxUsage> used(const Workspace& workspace,
                                           const agent::AgentUsage& told);

private:
    /// The end of a workspace that ends or has just ended, perhaps before the journal knows.
    std::optional<WorkspaceTable::Ended> endOf(const std::string& id) const;

    WorkspaceTable& table_;
    WorkspaceTerminator& terminator_;
    pool::SandboxRuntime& runtime_;
    Pauser& pauser_;
    const History history_;
};

template <typename Call>
auto WorkspaceAccess::ask(const std::shared_ptr<Workspace>& workspace, const std::string& path,
                          Call call, const std::string& to) {
    const Awake held = awake(workspace);
    try {
        return call();
    } catch (const agent::AgentError& e) {
        throw clientError(e, e.details().value("field", Json()) == "to" ? to : path);
    } catch (const agent::AgentLost& e) {
        throwUnanswered(*workspace, e);
    }
}

}  // namespace hearth::controller
