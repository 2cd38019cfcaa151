#pragma once

#include <memory>
#include <string>
#include <vector>

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
                    Claimer& claims, WorkspaceTerminator& endings, const KeyedIds& ids,
                    const History& history);

    /// Claims, or finds the workspace of the same key again (`replayed`). Returns null with
    /// `replayed` set if that workspace has already ended.
    Claimer::Claimed open(const Principal& who, const WorkspaceRequest& request, bool one_shot,
                          bool& replayed);
    /// `count` workspaces or none. With a key, workspaces that a killed server had opened count as
    /// the first ones. `ended`: the id of one with this key that has ended; then returns none.
    std::vector<Claimer::Claimed> openAll(const Principal& who, const WorkspaceRequest& request,
                                          std::size_t count, bool& replayed, std::string& ended);
    /// Ends a workspace that its opener cannot use.
    void discard(const std::shared_ptr<Workspace>& workspace) {
        endings_.end(workspace, EndReason::Failed, workspace->facts().trace);
    }
    /// The id of a keyed request's workspace.
    std::string idFor(const Principal& who, const WorkspaceRequest& request) const {
        return ids_.workspace(ids_.claim(who, request.idempotency_key, false));
    }

private:
    Claimer::Claimed openOnce(const Principal& who, const WorkspaceRequest& request,
                              ClaimWait& kept, bool one_shot, bool& replayed);
    std::vector<Claimer::Claimed> openAllOnce(const Principal& who, const WorkspaceRequest& request,
                                              ClaimWait& kept, bool& replayed, std::string& ended);
    std::vector<Claimer::Claimed> claimMissing(const Principal& who,
                                               const WorkspaceRequest& request, ClaimWait& kept,
                                               std::vector<std::shared_ptr<Workspace>> known);
    Claimer::Wanted wantedOf(const Principal& who, const WorkspaceRequest& request,
                             const ClaimWait& kept, const std::string& claim_id) const;
    void writeFiles(const std::shared_ptr<Workspace>& workspace, const WorkspaceRequest& request);
    /// Calls `claim` with one pool after the other, until one has the requested language.
    template <typename Claim>
    auto inSomePool(const Principal& who, const WorkspaceRequest& request, ClaimWait& kept,
                    Claim claim);
    /// Calls `open` with the state of the claim, and records how it fails.
    template <typename Open>
    auto accounted(const Principal& who, const WorkspaceRequest& request, Open open);

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
