#pragma once

#include "base/Json.h"
#include "controller/workspaces/Workspace.h"
#include "pool/agent/client/AgentTypes.h"

namespace hearth::controller {

/// What an agent is told with the bind and tells back after a restart (PROTOCOL.md, `note`).
Json bindNote(const WorkspaceFacts& facts);
/// The facts again, from an agent's own word. Throws Error(InvalidArgument) on a note that is none
/// of ours.
WorkspaceFacts factsFrom(const agent::Binding& binding, const pool::SandboxId& sandbox);

}  // namespace hearth::controller
