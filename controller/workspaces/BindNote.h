#pragma once

#include "base/Json.h"
#include "controller/egress/policy/ClaimSeal.h"
#include "controller/workspaces/Workspace.h"
#include "pool/agent/connection/AgentTypes.h"

namespace hearth::controller {

/// The note that an agent gets with the bind and returns after a restart (PROTOCOL.md, `note`),
/// with a proof: an agent in the hands of its tenant cannot change it.
Json bindNote(const WorkspaceFacts& facts, const egress::ClaimSeal& seal);

/// Rebuilds the facts from an agent's report. Throws Error(InvalidArgument), with the field, if
/// bindNote() did not write the note, or if it was changed.
WorkspaceFacts factsFrom(const agent::Binding& binding, const pool::SandboxId& sandbox,
                         const egress::ClaimSeal& seal);

}  // namespace hearth::controller
