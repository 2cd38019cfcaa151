#pragma once

#include <memory>
#include <optional>
#include <string>

#include "controller/egress/EgressGateway.h"
#include "controller/queue/WorkQueue.h"
#include "controller/store/History.h"
#include "controller/workspaces/UsageMeter.h"
#include "controller/workspaces/WorkspaceTable.h"
#include "metrics/EndReason.h"
#include "pool/runtime/SandboxRuntime.h"
#include "pool/warm/WarmPool.h"

namespace hearth::controller {

/// The one way a workspace ends, whoever asks: it stops answering, history gets the reason, and its
/// sandbox is destroyed after the answer. Thread-safe.
class WorkspaceTerminator {
public:
    WorkspaceTerminator(WorkspaceTable& table, pool::WarmPool& warm, pool::SandboxRuntime& runtime,
                        WorkQueue& work, const History& history, broker::EgressGateway& broker,
                        UsageMeter& usage);

    /// False if its end had begun. `trace`, here and below: the request that ends it.
    bool end(const std::shared_ptr<Workspace>& workspace, EndReason reason,
             const TraceContext& trace = {});
    /// Only if it is still due: the reclaimer's way.
    bool reclaim(const std::shared_ptr<Workspace>& workspace, EndReason reason, TimePoint now);
    /// Tells its owner, by an event, that it ends soon by itself.
    void warn(const Workspace& workspace, const NearEnd& end, TimePoint now);
    /// A sandbox's container has ended, its agent broke the protocol, or it was silent for too
    /// long: it is never used again. A workspace that names it ends as lost, or as out of memory
    /// where that is known, whatever phase the sandbox is in.
    void lost(const pool::SandboxId& sandbox, const std::string& why);
    /// Its agent has not answered, which ends nothing: a sandbox with a workspace is asked again
    /// (work of kind "suspect"); a warm one is given up. A single late call is ignored.
    void unanswered(const pool::SandboxId& sandbox, const agent::AgentLost& loss);
    /// Ends a workspace whose sandbox has not answered since the start. False if there is none.
    bool endExpected(const pool::SandboxId& sandbox, EndReason reason,
                     const TraceContext& trace = {});
    /// A warm sandbox is not needed any more: shrink, age, replaced, shutdown, drain. False for one
    /// that was claimed since `member` was seen: it stays its claim's. `why`: more than the reason,
    /// for operators.
    bool retire(const pool::Member& member, EndReason reason, const TraceContext& trace = {},
                const std::string& why = {});
    /// The last step of a claim, after its workspace was inserted into the table: false if its
    /// sandbox's end had begun by then, and the workspace has ended as lost. The end of a sandbox
    /// looks into the table after it has moved the member, so one of both sees the other.
    bool confirm(const std::shared_ptr<Workspace>& workspace);

private:
    /// `lag_seconds`: since it was due; none where nothing was.
    void finish(const std::shared_ptr<Workspace>& workspace, EndReason reason,
                const TraceContext& trace, std::optional<double> lag_seconds);
    /// Records the end as a span of the request, or of its own, with a link to the claim. What
    /// causes the work behind it; nothing where nobody records it.
    TraceContext record(const WorkspaceFacts& facts, EndReason reason, const TraceContext& request,
                        TimePoint begin) const;
    /// Tells the workspace what the kernel has killed in its sandbox, while the runtime still
    /// knows.
    void countKills(Workspace& workspace);
    /// A cluster says that the kernel ended all of the sandbox for memory.
    bool ranOutOfMemory(const pool::SandboxId& sandbox);

    WorkspaceTable& table_;
    pool::WarmPool& warm_;
    pool::SandboxRuntime& runtime_;
    WorkQueue& work_;
    const History history_;
    broker::EgressGateway& broker_;
    UsageMeter& usage_;
};

}  // namespace hearth::controller
