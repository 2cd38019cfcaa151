#pragma once

#include <optional>

#include "pool/agent/secure/Keys.h"

namespace hearth::agent {

/// Does the program's task in an init container: makes an identity, writes its secret to the new
/// file `path`, for `--identity` of the agent, and its public half to `told`, the container's
/// termination message. Returns the exit status.
int makeIdentity(const char* path, const char* told);

/// Takes the secret out of that file: afterwards it is only in this process, which nobody may read.
/// Returns nullopt, with a line on standard error, if there is none or it cannot be removed. Call
/// it before any tenant code runs.
std::optional<secure::AgentIdentity> takeIdentity(const char* path);

}  // namespace hearth::agent
