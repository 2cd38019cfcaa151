#pragma once

#include <string>

#include "controller/claims/ClaimAccount.h"
#include "controller/claims/Claimer.h"
#include "controller/claims/KeyedIds.h"
#include "controller/claims/KeysInFlight.h"
#include "controller/claims/PoolChooser.h"
#include "controller/workspaces/WorkspaceAccess.h"

namespace hearth::controller {

/// Opens a workspace for a request, once for each idempotency key: chooses the pool, claims, and
/// writes the files that came along. Thread-safe.
class WorkspaceOpener {
public:
    WorkspaceOpener(WorkspaceAccess& access, WorkspaceTable& table, PoolChooser& chooser,
                    Claimer& claims, WorkspaceTerminator& endings, const KeyedIds& ids,
                    const History& history);

    /// Claims, or finds the workspace of the same key again (`replayed`). Null with `replayed` set
    /// when that workspace has already ended.
    Claimer::Claimed open(const Principal& who, const WorkspaceRequest& request, bool one_shot,
                          bool& replayed);
    /// Ends a workspace that its opener cannot use.
    void discard(const std::shared_ptr<Workspace>& workspace) {
        endings_.end(workspace, EndReason::Failed, workspace->facts().trace_id);
    }
    /// The id that a keyed request's workspace has.
    std::string idFor(const Principal& who, const WorkspaceRequest& request) const {
        return ids_.workspace(ids_.claim(who, request.idempotency_key, false));
    }

private:
    Claimer::Claimed openOnce(const Principal& who, const WorkspaceRequest& request,
                              ClaimWait& kept, bool one_shot, bool& replayed);
    /// In one pool after the other, until one has the wanted language.
    Claimer::Claimed claimAs(const Principal& who, const WorkspaceRequest& request, ClaimWait& kept,
                             bool one_shot);
    Claimer::Claimed claimOnce(const Principal& who, const WorkspaceRequest& request,
                               ClaimWait& kept, bool one_shot);

    WorkspaceAccess& access_;
    WorkspaceTable& table_;
    PoolChooser& chooser_;
    Claimer& claims_;
    WorkspaceTerminator& endings_;
    const KeyedIds ids_;
    const History history_;
    const ClaimAccount account_{history_};
    KeysInFlight keys_;
};

}  // namespace hearth::controller
