#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "controller/contract/Executions.h"
#include "controller/executions/ExecutionEnds.h"
#include "controller/executions/ExecutionSettler.h"
#include "controller/executions/LiveExecutions.h"
#include "controller/store/History.h"
#include "controller/workspaces/WorkspaceAccess.h"

namespace hearth::controller {

/// Sends executions to agents, and adopts the executions that an agent reports after a restart.
/// Thread-safe.
class ExecutionStarter {
public:
    /// `mirrored`: the kinds of indexes that the server mirrors, as returned by
    /// EgressGateway::mirrored().
    ExecutionStarter(LiveExecutions& live, ExecutionSettler& settler, ExecutionEnds& ends,
                     WorkspaceAccess& access, WorkspaceTerminator& terminator,
                     std::vector<egress::IndexKind> mirrored, const History& history);

    /// `ledger`: the claim's, if the workspace was opened for this. If another request with this
    /// id came first, returns that one's execution, as a ReplayedExecution. Also throws as
    /// LiveExecutions::add().
    std::shared_ptr<Execution> launch(const std::shared_ptr<Workspace>& workspace,
                                      const ExecutionRequest& request, const std::string& id,
                                      const TraceContext& trace,
                                      const std::optional<ClaimLedger>& ledger);
    /// Recovery: adopts an execution that an agent reported.
    void adopt(const std::shared_ptr<Workspace>& workspace, const agent::KnownExecution& known);
    /// Recovery: see ExecutionSettler.
    void adoptOneShot(const Workspace& workspace) { settler_.adoptOneShot(workspace); }

private:
    std::shared_ptr<LiveExecution> make(LiveExecution::Facts facts,
                                        const std::shared_ptr<Workspace>& workspace,
                                        QuotaLedger::Hold quota);
    /// Returns the context that the request names; throws if the request contradicts it.
    ContextFacts contextOf(const Workspace& workspace, const ExecutionRequest& request);
    /// Returns the agent's part of the request.
    agent::ExecRequest workOf(const Workspace& workspace, const ExecutionRequest& request,
                              const std::string& id, const TraceContext& trace);
    /// Returns the server's part of the request, without its trace and its claim.
    LiveExecution::Facts factsOf(const ExecutionRequest& request,
                                 const agent::ExecRequest& work) const;
    /// Adds it to the live ones. False if another request came first with the same key: that one
    /// runs it.
    bool enlist(const std::shared_ptr<LiveExecution>& execution);
    /// Returns the execution of the request that came first.
    std::shared_ptr<Execution> otherOf(const std::string& id) const;
    /// Sends the work to the agent; if that fails, the execution is taken back.
    std::shared_ptr<agent::ExecHandle> send(const std::shared_ptr<LiveExecution>& execution,
                                            agent::ExecRequest work);
    /// Removes an execution that the agent does not know: it does not run.
    void takeBack(LiveExecution& execution);

    LiveExecutions& live_;
    ExecutionSettler& settler_;
    ExecutionEnds& ends_;
    WorkspaceAccess& access_;
    WorkspaceTerminator& terminator_;
    const std::vector<egress::IndexKind> mirrored_;
    const History history_;
};

}  // namespace hearth::controller
