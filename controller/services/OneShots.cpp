#include "controller/services/OneShots.h"

namespace hearth::controller {

OneShots::OneShots(const LiveExecutions& executions, WorkspaceTable& table,
                   WorkspaceTerminator& terminator, Journal& journal)
    : executions_(executions), table_(table), terminator_(terminator), journal_(journal) {}

ReconcileResult OneShots::settle(const std::string& id) {
    const std::shared_ptr<Workspace> workspace = table_.find(id);
    if (!workspace || !workspace->facts().one_shot) return ReconcileResult::settled();
    // The record of the last execution adds the key again.
    if (executions_.anyOf(id)) return ReconcileResult::settled();
    terminator_.end(workspace, EndReason::OneShot, workspace->facts().trace);
    return ReconcileResult::settled();
}

ReconcileResult OneShots::settleAdopted(const std::string& id) {
    const std::shared_ptr<Workspace> workspace = table_.find(id);
    if (!workspace || executions_.anyOf(id)) return ReconcileResult::settled();
    const bool unsent = journal_.executionsOf(id).empty();
    const ReconcileResult result = settle(id);
    if (unsent) journal_.forget(id, workspace->facts().sandbox);
    return result;
}

}  // namespace hearth::controller
