#pragma once

#include <string>

#include "controller/executions/LiveExecutions.h"
#include "controller/journal/Journal.h"
#include "controller/queue/ReconcileLoop.h"
#include "controller/workspaces/WorkspaceTerminator.h"

namespace hearth::controller {

/// Ends the workspaces of one shots. Level-based: the state of the workspace decides, so that a
/// crash between any two steps leaves no workspace. Thread-safe.
class OneShots {
public:
    OneShots(const LiveExecutions& executions, WorkspaceTable& table,
             WorkspaceTerminator& terminator, Journal& journal);

    /// Work of kind "oneshot", named by the workspace: ends it once the results of all its
    /// executions are durable. File transfers do not delay this.
    ReconcileResult settle(const std::string& workspace);
    /// Work of kind "oneshot-adopted": the same for one left by a crash. If the crash came before
    /// its execution was sent, history forgets it too, so that a retry with the same key runs it.
    ReconcileResult settleAdopted(const std::string& workspace);

private:
    const LiveExecutions& executions_;
    WorkspaceTable& table_;
    WorkspaceTerminator& terminator_;
    Journal& journal_;
};

}  // namespace hearth::controller
