#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "base/Clock.h"
#include "base/Lifeline.h"
#include "base/Mutex.h"
#include "controller/executions/LiveExecutions.h"
#include "controller/queue/ReconcileLoop.h"
#include "controller/store/History.h"
#include "controller/workspaces/WorkspaceTable.h"
#include "controller/workspaces/WorkspaceTerminator.h"
#include "pool/runtime/SandboxRuntime.h"

namespace hearth::controller {

/// The work after the end of an execution: writes its record, lets the agent forget it, ends a one
/// shot's sandbox; also handles executions that do not end when they should. Thread-safe.
class ExecutionSettler {
public:
    ExecutionSettler(LiveExecutions& live, WorkspaceTable& table, WorkspaceTerminator& terminator,
                     WorkQueue& work, const History& history);

    /// Recovery: takes over a one shot's workspace, after its executions were adopted. A client
    /// that repeats its request has a moment to find it.
    void adoptOneShot(const Workspace& workspace);
    /// Lets the agent forget the execution: its record is on disk.
    void forgetSoon(const Workspace& workspace, const std::string& id);
    /// Work of kind "execution": writes the record; then the agent may forget the execution, and a
    /// one shot's sandbox may end.
    ReconcileResult settle(const std::string& id);
    /// Work of kind "overdue": condemns sandboxes whose agent answers but let a deadline pass;
    /// tells those who wait if it does not answer; keeps one shots alive while their results wait
    /// for the disk.
    ReconcileResult endOverdue();
    /// Work of kind "forget"; its name is `<workspace>/<execution>`.
    ReconcileResult forget(const std::string& name);
    /// Ends what still runs in a sandbox whose workspace has ended. Returns whether all that only
    /// the sandbox could tell a later start is on disk, so that it may be destroyed; true also
    /// after a while in which the disk took no records.
    bool allRecorded(const pool::SandboxId& sandbox);

private:
    /// Records it as a span.
    void record(const LiveExecution& execution, const ExecutionView& view) const;
    /// Asks its agent; one that does not answer falls silent.
    bool answers(const Workspace& workspace);
    /// Keeps a one shot from ending as idle while its result waits for the disk.
    void hold(Workspace& workspace, TimePoint now);
    void recorded(const std::string& id, const std::shared_ptr<Workspace>& workspace, bool durable,
                  std::size_t kept_bytes);

    LiveExecutions& live_;
    WorkspaceTable& table_;
    WorkspaceTerminator& terminator_;
    WorkQueue& work_;
    const History history_;
    Mutex mutex_;
    std::map<pool::SandboxId, TimePoint> unrecorded_ HEARTH_GUARDED_BY(mutex_);  ///< since when
    std::set<std::string> answered_overdue_;  ///< from the last look; used only by endOverdue()
    /// The journal may call back after this object is gone.
    const Lifeline<ExecutionSettler> lifeline_{*this};
};

}  // namespace hearth::controller
