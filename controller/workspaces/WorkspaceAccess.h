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

/// The door to a tenant's workspaces: finds one, or says what became of it, and asks its agent.
/// Thread-safe.
class WorkspaceAccess {
public:
    WorkspaceAccess(WorkspaceTable& table, WorkspaceTerminator& endings,
                    pool::SandboxRuntime& runtime, Pauser& pauser, const History& history);

    /// May know of a tenant's workspace and end it.
    static bool sees(const Principal& who, const std::string& tenant);
    /// The principal's active workspace, or the error that says what became of it.
    std::shared_ptr<Workspace> require(const Principal& who, const std::string& id);
    /// The same, but admins see every tenant's.
    std::shared_ptr<Workspace> requireVisible(const Principal& who, const std::string& id);
    QuotaLedger& quotas() { return table_.quotas(); }
    /// Sandboxes of this tenant have not answered yet since the start.
    bool expectsOf(const std::string& tenant) const { return table_.expectsOf(tenant); }
    /// Error(Gone) for one that has ended, Unavailable while it does not answer, else NotFound.
    [[noreturn]] void explainMissing(const Principal& who, const std::string& id);
    /// The error for a context that no workspace of the tenant has: Error(Gone) or NotFound.
    [[noreturn]] void explainMissingContext(const std::string& tenant, const std::string& id);
    /// Before its agent is asked anything: it is resumed if it is paused, and stays awake until the
    /// result goes. Error(Unavailable) if its agent is known to be silent at the moment.
    Awake awake(const std::shared_ptr<Workspace>& workspace);
    /// After a call without an answer: Error(SandboxLost) where the sandbox has ended, Deadline
    /// where only this call was late, else Unavailable, for it may answer yet.
    [[noreturn]] void throwUnanswered(const Workspace& workspace, const agent::AgentLost& loss);
    /// Runs a call to the agent; its refusals and its silence become errors for a client. `path`:
    /// of the file that the call is about, if any.
    template <typename Call>
    auto ask(const std::shared_ptr<Workspace>& workspace, const std::string& path, Call call);
    /// The usage of its sandbox, in a cluster as its agent has told it; nullopt if neither knows.
    std::optional<pool::SandboxUsage> used(const Workspace& workspace,
                                           const agent::AgentUsage& told);

private:
    WorkspaceTable& table_;
    WorkspaceTerminator& endings_;
    pool::SandboxRuntime& runtime_;
    Pauser& pauser_;
    const History history_;
};

template <typename Call>
auto WorkspaceAccess::ask(const std::shared_ptr<Workspace>& workspace, const std::string& path,
                          Call call) {
    const Awake held = awake(workspace);
    try {
        return call();
    } catch (const agent::AgentError& e) {
        throw clientError(e, path);
    } catch (const agent::AgentLost& e) {
        throwUnanswered(*workspace, e);
    }
}

}  // namespace hearth::controller
