#pragma once

#include "controller/ExecutionService.h"
#include "controller/PoolService.h"
#include "controller/SandboxReconciler.h"
#include "controller/broker/Broker.h"
#include "pool/ClaimMarks.h"

namespace hearth::controller {

/// Reads the truth back after any kind of end: asks the runtime what exists and every agent who
/// holds it (DESIGN section 2). Claimed sandboxes go on as workspaces with their executions, warm
/// ones of a declared template are warm again, everything else is swept. Runs once, before the
/// listeners open and the loop starts.
class Recovery {
public:
    Recovery(pool::ContainerRuntime& runtime, pool::WarmPool& warm, pool::ClaimMarks& marks,
             SandboxReconciler& sandboxes, SpecStore& specs, WorkspaceTable& table,
             ExecutionService& executions, Journal& journal, metrics::Log& log,
             broker::Broker& broker, const Clock& clock);

    struct Outcome {
        std::size_t workspaces = 0;
        std::size_t warm = 0;
        std::size_t swept = 0;
    };

    Outcome run();

private:
    enum class Verdict { Claimed, Warm, Swept };

    /// The agents' answers: connected, or null for what must be swept.
    std::map<pool::SandboxId, std::shared_ptr<agent::AgentClient>> askAll(
        const std::vector<pool::SandboxInfo>& found);
    std::shared_ptr<agent::AgentClient> ask(const pool::SandboxId& id);
    Verdict place(const pool::SandboxInfo& info, const std::shared_ptr<agent::AgentClient>& agent);
    void adoptWorkspace(pool::Member member, const std::shared_ptr<agent::AgentClient>& agent);
    /// Throws Error for a workspace that is not known to be the sandbox's own.
    void checkOwner(const WorkspaceFacts& facts, const broker::ClaimReach& reach) const;
    void adoptContexts(const std::shared_ptr<Workspace>& workspace, const agent::Hello& hello);
    void closeHistory();

    pool::ContainerRuntime& runtime_;
    pool::WarmPool& warm_;
    pool::ClaimMarks& marks_;
    SandboxReconciler& sandboxes_;
    SpecStore& specs_;
    WorkspaceTable& table_;
    ExecutionService& executions_;
    Journal& journal_;
    metrics::Log& log_;
    broker::Broker& broker_;
    const Clock& clock_;
};

}  // namespace hearth::controller
