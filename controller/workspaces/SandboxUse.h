#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include "controller/workspaces/Workspace.h"
#include "pool/agent/client/AgentClient.h"
#include "pool/runtime/SandboxRuntime.h"

namespace hearth::controller {

/// How long an agent may take to tell what its sandbox uses.
inline constexpr std::chrono::milliseconds kUsePatience{1000};

/// The word of an agent, in the runtime's form; nullopt where it does not tell what its control
/// group uses.
std::optional<pool::SandboxUsage> toldUse(const agent::AgentUsage& told);

/// The use of a sandbox: as its runtime reads it, or, where a cluster has it, as its agent tells
/// it. Blocks for kUsePatience at most. nullopt if neither knows, or there is no agent (null): its
/// silence is no error here, since those who follow its connection hear of it. Throws what
/// SandboxRuntime::usage() throws.
std::optional<pool::SandboxUsage> sandboxUse(pool::SandboxRuntime& runtime,
                                             const pool::SandboxId& id,
                                             const std::shared_ptr<agent::AgentClient>& agent);
/// The same of a workspace's. A silent agent is not asked.
std::optional<pool::SandboxUsage> sandboxUse(pool::SandboxRuntime& runtime,
                                             const Workspace& workspace);

}  // namespace hearth::controller
