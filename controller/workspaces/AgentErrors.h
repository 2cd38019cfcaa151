#pragma once

#include "base/Error.h"
#include "pool/agent/connection/AgentTypes.h"

namespace hearth::controller {

/// An agent's refusal as an Error for a client. `path`: the file it was about, if any.
Error clientError(const agent::AgentError& error, const std::string& path = {});

/// The same, for an operation on a context; `language` is the one that was asked for, if any.
Error contextError(const agent::AgentError& error, const std::string& language);

/// The agent of the workspace does not answer at the moment.
Error silentError(const std::string& workspace);
/// A sandbox that has not answered yet may hold what a key was used for.
Error unknownClaimError();

}  // namespace hearth::controller
