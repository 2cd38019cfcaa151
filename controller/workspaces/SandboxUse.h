#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include "controller/workspaces/Workspace.h"
#include "pool/agent/client/AgentClient.h"
#include "pool/runtime/SandboxRuntime.h"

namespace hearth::controller {

/// How long an agent may take to report its sandbox's usage.
inline constexpr std::chrono::milliseconds kUsePatience{1000};

/// Returns an agent's report in the runtime's form; nullopt if it does not report its control
/// group's usage.
std::optional<pool::SandboxUsage> toldUse(const agent::AgentUsage& told);

/// Returns a sandbox's usage: as its runtime reads it, or, in a cluster, as its agent reports
/// it. Blocks for at most kUsePatience. nullopt if neither knows, or there is no agent (null): its
/// silence is no error here, because the owner of its connection notices it. Throws the errors of
/// SandboxRuntime::usage().
std::optional<pool::SandboxUsage> sandboxUse(pool::SandboxRuntime& runtime,
                                             const pool::SandboxId& id,
                                             const std::shared_ptr<agent::AgentClient>& agent);
/// The same for a workspace's sandbox. Does not ask a silent agent.
std::optional<pool::SandboxUsage> sandboxUse(pool::SandboxRuntime& runtime,
                                             const Workspace& workspace);

}  // namespace hearth::controller
