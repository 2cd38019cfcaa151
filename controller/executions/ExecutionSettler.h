#pragma once

#include <memory>
#include <set>
#include <string>

#include "base/Lifeline.h"
#include "controller/executions/LiveExecutions.h"
#include "controller/queue/ReconcileLoop.h"
#include "controller/store/History.h"
#include "controller/workspaces/WorkspaceTable.h"
#include "controller/workspaces/WorkspaceTerminator.h"
#include "pool/runtime/SandboxRuntime.h"

namespace hearth::controller {

/// The work after the end of an execution: its record, the agent that may forget it, the one shot
/// that may go; and executions that do not end when they should. Thread-safe.
class ExecutionSettler {
public:
    ExecutionSettler(LiveExecutions& live, WorkspaceTable& table, WorkspaceTerminator& endings,
                     pool::SandboxRuntime& runtime, WorkQueue& work, const History& history);

    /// Its end will be settled. Before it is sent.
    void follow(LiveExecution& execution);
    /// Recovery: a one shot's workspace, after its executions were adopted. A client that repeats
    /// its request has a moment to find it.
    void adoptOneShot(const Workspace& workspace);
    /// Its record is on disk: the agent may forget it.
    void forgetSoon(const Workspace& workspace, const std::string& id);
    /// Work of kind "execution": its record is on disk, so the agent may forget it, and a one
    /// shot's sandbox may go.
    ReconcileResult settle(const std::string& id);
    /// Work of kind "oom": asks the runtime, or the agent, whether the kernel killed an execution
    /// for memory, which the thread that read its end must not wait for; then the end is reported.
    ReconcileResult lookForOom(const std::string& id);
    /// Work of kind "result": reads one of an execution's results, which takes time where it is
    /// long. Its tenant's other executions come before its next one.
    ReconcileResult readResult(const std::string& id);
    /// Work of kind "overdue": condemns sandboxes whose agent answers but let a deadline pass;
    /// keeps one shots alive while their results wait for the disk.
    ReconcileResult endOverdue();
    /// Work of kind "forget", named `<workspace>/<execution>`.
    ReconcileResult forget(const std::string& name);

private:
    void ended(const std::shared_ptr<LiveExecution>& execution);
    /// As a span.
    void record(const LiveExecution& execution, const ExecutionView& view) const;
    /// Whether the kernel has killed for memory since this was last asked; false if neither the
    /// runtime nor the agent can tell.
    bool sawOom(Workspace& workspace);
    /// A one shot does not end as idle while its result waits for the disk.
    void hold(Workspace& workspace, TimePoint now);
    void recorded(const std::string& id, const std::shared_ptr<Workspace>& workspace, bool durable,
                  std::size_t kept_bytes);

    LiveExecutions& live_;
    WorkspaceTable& table_;
    WorkspaceTerminator& endings_;
    pool::SandboxRuntime& runtime_;
    WorkQueue& work_;
    const History history_;
    std::set<std::string> answered_overdue_;  ///< of the last look; endOverdue()'s alone
    /// Agents may end executions, and the journal call back, after this has gone.
    const Lifeline<ExecutionSettler> lifeline_{*this};
};

}  // namespace hearth::controller
