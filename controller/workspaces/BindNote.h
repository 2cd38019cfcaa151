#pragma once

#include "base/Json.h"
#include "controller/workspaces/Workspace.h"
#include "pool/agent/connection/AgentTypes.h"

namespace hearth::controller {

/// The note that an agent gets with the bind and returns after a restart (PROTOCOL.md, `note`).
Json bindNote(const WorkspaceFacts& facts);
/// Rebuilds the facts from an agent's report. Throws Error(InvalidArgument), with
/// the field, if bindNote() did not write the note.
WorkspaceFacts factsFrom(const agent::Binding& binding, const pool::SandboxId& sandbox);

}  // namespace hearth::controller
