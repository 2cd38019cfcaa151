#pragma once

#include <optional>

#include "pool/agent/secure/Keys.h"

namespace hearth::agent {

/// The program's task in an init container: makes an identity, leaves its secret in the new file
/// `path`, for `--identity` of the agent, and writes its public half to `told`, the container's
/// termination message. Returns the exit status.
int makeIdentity(const char* path, const char* told);

/// Takes the secret out of that file: afterwards it is only in this process, which nobody may read.
/// Nullopt, with a line on standard error, if there is none or it cannot be removed. Called before
/// any code of a tenant's runs.
std::optional<secure::AgentIdentity> takeIdentity(const char* path);

}  // namespace hearth::agent
