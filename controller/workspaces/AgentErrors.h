#pragma once

#include "base/Error.h"
#include "pool/agent/connection/AgentTypes.h"

namespace hearth::controller {

/// Returns an agent's refusal as an Error for a client. `path`: the file it was about, if any.
Error clientError(const agent::AgentError& error, const std::string& path = {});

/// The same, for an operation on a context; `language` is the requested one, if any.
Error contextError(const agent::AgentError& error, const std::string& language);

/// The error if the agent of the workspace does not answer at the moment.
Error silentError(const std::string& workspace);
/// The error if a sandbox that has not answered yet may hold the workspace of a key.
Error unknownClaimError();

}  // namespace hearth::controller
