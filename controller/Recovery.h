#pragma once

#include "controller/egress/EgressGateway.h"
#include "controller/executions/ExecutionStarter.h"
#include "controller/gpus/GpuLedger.h"
#include "controller/reconcile/AgentConnector.h"
#include "controller/store/History.h"
#include "controller/store/SpecStore.h"
#include "pool/warm/Fleet.h"

namespace hearth::controller {

/// Recovers the state after any kind of end: asks the runtime which sandboxes exist, and every
/// agent which claim holds it (PROTOCOL.md). Claimed sandboxes continue as workspaces with
/// their executions, warm ones of a declared template are warm again. A live one that does not
/// answer is kept while it may hold a workspace, and SuspectSandboxes asks it again; the rest is
/// swept after the start. Call run() once, before the listeners open and the loop starts.
class Recovery {
public:
    Recovery(const pool::Fleet& fleet, AgentConnector& agents, SpecStore& specs,
             WorkspaceTable& table, GpuLedger& gpus, ExecutionStarter& executions,
             const History& history, egress::EgressGateway& gateway);

    /// A sandbox that uses all of its CPU answers late: it is asked again after the start.
    static constexpr std::chrono::milliseconds kFirstAnswer{2000};

    struct Outcome {
        std::size_t workspaces = 0;
        std::size_t warm = 0;
        std::size_t swept = 0;
        std::vector<pool::SandboxId> silent;  ///< kept, to be asked again
    };

    /// `found`: the sandboxes that the runtime lists. `patience`: the wait for one agent, before
    /// the server opens without it.
    Outcome run(std::vector<pool::SandboxInfo> found,
                std::chrono::milliseconds patience = kFirstAnswer);

    enum class Verdict { Claimed, Warm, Swept };

    /// Connects, and learns a higher epoch if there was one. Throws agent::AgentLost,
    /// agent::AgentError.
    std::shared_ptr<agent::AgentClient> ask(const pool::SandboxInfo& info,
                                            std::chrono::milliseconds patience);
    /// Gives a sandbox the role that its agent reports; Swept if it has none.
    Verdict place(const pool::SandboxInfo& info, const std::shared_ptr<agent::AgentClient>& agent);
    /// Asks the agent of a workspace that fell silent: on its connection if there is one, else on a
    /// new one if it still reports the same claim; executions continue. `before`: the number of
    /// failed attempts. Throws agent::AgentLost, agent::AgentError.
    void rejoin(const std::shared_ptr<Workspace>& workspace, std::chrono::milliseconds patience,
                unsigned before);

private:
    /// The answer of one sandbox: its agent, or that it may answer later.
    struct Answer {
        std::shared_ptr<agent::AgentClient> agent;
        bool later = false;
    };

    std::map<pool::SandboxId, Answer> askAll(const std::vector<pool::SandboxInfo>& found,
                                             std::chrono::milliseconds patience);
    Answer askOnce(const pool::SandboxInfo& info, std::chrono::milliseconds patience);
    pool::Member memberOf(const pool::SandboxInfo& info) const;
    /// Keeps a sandbox if it may hold a workspace.
    bool expect(const pool::SandboxInfo& info,
                const std::map<pool::SandboxId, WorkspaceRecord>& open);
    std::map<pool::SandboxId, WorkspaceRecord> openWorkspaces();
    void adoptWorkspace(pool::Member member, const std::shared_ptr<agent::AgentClient>& agent,
                        bool on_disk);
    /// Adopts the contexts and executions that the agent has.
    void adoptWork(const std::shared_ptr<Workspace>& workspace, const agent::Hello& hello);
    /// Raises the epoch above every one that an agent has seen, and stores it: a lost data file
    /// must not fence out this server.
    void raiseEpoch(const std::map<pool::SandboxId, Answer>& answers);
    /// Places a sandbox, or keeps it to be asked again.
    void settle(const pool::SandboxInfo& info, const Answer& answer,
                const std::map<pool::SandboxId, WorkspaceRecord>& open, Outcome& outcome);
    /// Returns 0 if history does not know.
    std::uint64_t storedEpoch() const;
    void storeEpoch(std::uint64_t epoch);
    /// Throws Error if the workspace is not known to be the sandbox's own.
    void checkOwner(const WorkspaceFacts& facts, const egress::ClaimReach& reach) const;
    void adoptContexts(const std::shared_ptr<Workspace>& workspace, const agent::Hello& hello);
    void closeHistory();

    const pool::Fleet fleet_;
    AgentConnector& agents_;
    SpecStore& specs_;
    WorkspaceTable& table_;
    GpuLedger& gpus_;
    ExecutionStarter& executions_;
    const History history_;
    egress::EgressGateway& gateway_;
};

}  // namespace hearth::controller
