#pragma once

#include "base/Error.h"
#include "pool/agent/AgentClient.h"

namespace hearth::controller {

/// What an agent's refusal means to a client. `path`: the file it was about, if any.
Error clientError(const agent::AgentError& error, const std::string& path = {});

}  // namespace hearth::controller
