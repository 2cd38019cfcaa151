#pragma once

#include <memory>

#include "base/Lifeline.h"
#include "base/task/Executor.h"
#include "controller/executions/ArtifactCollector.h"
#include "controller/executions/LiveExecutions.h"
#include "controller/queue/WorkQueue.h"
#include "controller/store/History.h"
#include "pool/runtime/SandboxRuntime.h"

namespace hearth::controller {

/// Takes each execution from its agent's last report to its end: its long results are read, its
/// artifacts are collected, the kernel is asked about memory, and then the end is reported. Steps
/// that take time run in turns of the tenants, each execution's as one task. Thread-safe.
class ExecutionEnds {
public:
    /// All references must outlive this object.
    ExecutionEnds(LiveExecutions& live, ArtifactCollector& artifacts, pool::SandboxRuntime& runtime,
                  WorkQueue& work, const History& history);

    /// Returns the part that an execution keeps; it may outlive this object.
    LiveExecution::Reports reports();

private:
    using ExecutionPtr = std::shared_ptr<LiveExecution>;

    /// Starts the end of an execution in the thread that reads its agent. Without steps that take
    /// time, it is over when this returns.
    void begin(const ExecutionPtr& execution);
    Task<> end(ExecutionPtr execution);
    /// The steps before the end is reported.
    Task<> gather(ExecutionPtr execution);
    /// Reads the results that wait. The tenant's other work comes before each next one.
    Task<> readResults(ExecutionPtr execution);
    CollectedArtifacts artifactsOf(const LiveExecution& execution);
    /// True if the end must wait for the runtime's, or the agent's, word about memory.
    bool mayHaveMetOom(const LiveExecution& execution) const;
    void lookForOom(LiveExecution& execution);
    /// Returns whether the kernel has killed for memory since the last call; false if neither the
    /// runtime nor the agent knows.
    bool sawOom(Workspace& workspace);
    /// Its workspace and its context learn of the end; the record follows soon.
    void release(const LiveExecution& execution);

    LiveExecutions& live_;
    ArtifactCollector& artifacts_;
    pool::SandboxRuntime& runtime_;
    WorkQueue& work_;
    const History history_;
    Executor readers_;  ///< apart, because live output waits for results
    Executor executor_;
    const Lifeline<ExecutionEnds> lifeline_{*this};
};

}  // namespace hearth::controller
