#include "controller/workspaces/SandboxUse.h"

namespace hearth::controller {

std::optional<pool::SandboxUsage> toldUse(const agent::AgentUsage& told) {
    if (!told.group) return std::nullopt;
    const std::uint64_t processes = told.processes + 1;  // a runtime counts the agent, too
    return pool::SandboxUsage{told.group->cpu_ns, told.group->memory_bytes,
                              told.group->memory_peak_bytes, processes, told.group->oom_kills};
}

std::optional<pool::SandboxUsage> sandboxUse(pool::SandboxRuntime& runtime,
                                             const pool::SandboxId& id,
                                             const std::shared_ptr<agent::AgentClient>& agent) {
    if (std::optional<pool::SandboxUsage> use = runtime.usage(id)) return use;
    // Outside a cluster, a sandbox that the runtime does not know is gone.
    if (!runtime.inCluster() || agent == nullptr) return std::nullopt;
    try {
        return toldUse(agent->usage(kUsePatience));
    } catch (const agent::AgentLost&) {
        return std::nullopt;
    } catch (const agent::AgentError&) {  // it refuses this question
        return std::nullopt;
    }
}

std::optional<pool::SandboxUsage> sandboxUse(pool::SandboxRuntime& runtime,
                                             const Workspace& workspace) {
    return sandboxUse(runtime, workspace.facts().sandbox,
                      workspace.silentSince() ? nullptr : workspace.agent());
}

}  // namespace hearth::controller
