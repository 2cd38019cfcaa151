#pragma once

#include <memory>
#include <optional>
#include <string>

#include "controller/egress/EgressGateway.h"
#include "controller/queue/WorkQueue.h"
#include "controller/store/Epoch.h"
#include "controller/store/History.h"
#include "controller/workspaces/UsageMeter.h"
#include "controller/workspaces/WorkspaceTable.h"
#include "metrics/EndReason.h"
#include "pool/warm/Fleet.h"

namespace hearth::controller {

/// The reason of a sandbox's end, if one is marked; an unknown number is Lost.
std::optional<EndReason> markedEnd(const pool::ClaimMarks& marks, const pool::SandboxId& sandbox);

/// The only way in which a workspace ends: it stops answering, history gets the reason, and its
/// sandbox is destroyed after the answer. Thread-safe.
class WorkspaceTerminator {
public:
    WorkspaceTerminator(WorkspaceTable& table, const pool::Fleet& fleet, const Epoch& epoch,
                        WorkQueue& work, const History& history, egress::EgressGateway& gateway,
                        UsageMeter& usage);

    /// False if its end had already begun. `trace`, here and below: the request that ends it. When
    /// this returns, a crash of the server does not undo the end.
    bool end(const std::shared_ptr<Workspace>& workspace, EndReason reason,
             const TraceContext& trace = {});
    /// Ends it only if it is still due. Called by the reclaimer.
    bool reclaim(const std::shared_ptr<Workspace>& workspace, EndReason reason, TimePoint now);
    /// Warns its owner, by an event, that it ends soon by itself.
    void warn(const Workspace& workspace, const NearEnd& end, TimePoint now);
    /// A sandbox's container has ended, its agent broke the protocol, or it was silent for too
    /// long: it is never used again. Its workspace ends as lost, or as out of memory
    /// if that is known, whatever phase the sandbox is in.
    void lost(const pool::SandboxId& sandbox, const std::string& why);
    /// Its agent has not answered, which ends nothing: a sandbox with a workspace is asked again
    /// (work of kind "suspect"); a warm one is given up. A single late call is ignored.
    void unanswered(const pool::SandboxId& sandbox, const agent::AgentLost& loss);
    /// Ends a workspace whose sandbox has not answered since the start. False if there is none.
    bool endExpected(const pool::SandboxId& sandbox, EndReason reason,
                     const TraceContext& trace = {});
    /// Recovery: repeats the ends that an earlier server had marked.
    void endMarked();
    /// Retires a warm sandbox: shrink, age, replaced, shutdown, drain. False if it was claimed
    /// since `member` was seen: then its claim keeps it. `why`: more than the reason,
    /// for operators.
    bool retire(const pool::Member& member, EndReason reason, const TraceContext& trace = {},
                const std::string& why = {});
    /// The last step of a claim, after its workspace was inserted into the table: false if its
    /// sandbox's end had begun by then, and the workspace has ended as lost. The end of a sandbox
    /// checks the table after it has moved the member, so one of the two sees the other.
    bool confirm(const std::shared_ptr<Workspace>& workspace);

private:
    /// `lag_seconds`: since it was due; none if it was not due.
    void finish(const std::shared_ptr<Workspace>& workspace, EndReason reason,
                const TraceContext& trace, std::optional<double> lag_seconds);
    /// Records the end as a span of the request, or as its own, with a link to the claim. Returns
    /// the cause for the follow-up work; empty if it is not recorded.
    TraceContext record(const WorkspaceFacts& facts, EndReason reason, const TraceContext& request,
                        TimePoint begin) const;
    /// In a cluster the next leader may not see this server's marks: its agent learns the end.
    void tellAgent(const Workspace& workspace);
    /// Tells the workspace the kernel's kills in its sandbox, while the runtime still knows
    /// them.
    void countKills(Workspace& workspace);
    /// True if a cluster reports that the kernel killed the whole sandbox for memory.
    bool ranOutOfMemory(const pool::SandboxId& sandbox);

    WorkspaceTable& table_;
    const pool::Fleet fleet_;
    const Epoch& epoch_;
    WorkQueue& work_;
    const History history_;
    egress::EgressGateway& gateway_;
    UsageMeter& usage_;
};

}  // namespace hearth::controller
