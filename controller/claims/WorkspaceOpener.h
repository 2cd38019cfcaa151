#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/task/Task.h"
#include "controller/claims/ClaimAccount.h"
#include "controller/claims/Claimer.h"
#include "controller/claims/KeyedIds.h"
#include "controller/claims/KeysInFlight.h"
#include "controller/claims/PoolChooser.h"
#include "controller/workspaces/WorkspaceAccess.h"

namespace hearth::controller {

/// Opens a workspace for a request, once for each idempotency key: chooses the pool, claims, and
/// writes the request's files. Thread-safe.
class WorkspaceOpener {
public:
    WorkspaceOpener(WorkspaceAccess& access, WorkspaceTable& table, PoolChooser& chooser,
                    Claimer& claimer, WorkspaceTerminator& terminator, const KeyedIds& ids,
                    const History& history);

    /// The outcome of a request, which may be a repeated one.
    struct Opened {
        std::vector<Claimer::Claimed> all;  ///< empty if a workspace of the same key has ended
        bool replayed = false;              ///< they are those of an earlier request
        std::string ended{};                ///< the id of one of the same key that has ended
    };
    /// Claims a workspace, or finds that of the same key again. The arguments outlive the task.
    /// To destroy the task while it waits leaves the line.
    Task<Opened> open(const Principal& who, const WorkspaceRequest& request, bool one_shot) {
        return openAll(who, request, {ids_.claim(who, request.idempotency_key, one_shot)},
                       one_shot);
    }
    /// The same for `count` workspaces or none. Of those that a killed server has opened in part it
    /// claims the rest.
    Task<Opened> openAll(const Principal& who, const WorkspaceRequest& request, std::size_t count);
    /// Ends a workspace that its opener cannot use.
    void discard(const std::shared_ptr<Workspace>& workspace) {
        terminator_.end(workspace, EndReason::Failed, workspace->facts().trace);
    }

private:
    class Account;
    using WorkspacePtr = std::shared_ptr<Workspace>;

    Task<Opened> openAll(const Principal& who, const WorkspaceRequest& request,
                         std::vector<std::string> claim_ids, bool one_shot);
    /// The same without the account of how it ends.
    Task<Opened> openOrFind(const Principal& who, const WorkspaceRequest& request,
                            std::vector<std::string> claim_ids, bool one_shot, Account& account);
    /// Looks for the workspaces of an earlier request with the same key; null where one is missing.
    /// Throws if the key is another request's, or its workspace's sandbox is silent.
    std::vector<WorkspacePtr> known(const WorkspaceRequest& request,
                                    const std::vector<std::string>& claim_ids, Opened& opened);
    /// Claims in one pool after the other, until one has the requested language.
    Task<std::vector<Claimer::Claimed>> claim(const Principal& who, const WorkspaceRequest& request,
                                              std::vector<std::string> claim_ids, bool one_shot,
                                              Account& account);
    Claimer::Wanted wantedOf(const Principal& who, const WorkspaceRequest& request,
                             const OnDemandPools::Found& found, const std::string& claim_id) const;
    /// Writes the request's files, or ends the workspaces.
    void writeFiles(const std::vector<Claimer::Claimed>& claimed, const WorkspaceRequest& request,
                    const TraceContext& trace);

    WorkspaceAccess& access_;
    WorkspaceTable& table_;
    PoolChooser& chooser_;
    Claimer& claimer_;
    WorkspaceTerminator& terminator_;
    const KeyedIds ids_;
    const History history_;
    const ClaimAccount account_{history_};
    KeysInFlight keys_;
};

}  // namespace hearth::controller
