#pragma once

#include <string>

#include "pool/isolation/TenantFilter.h"

namespace hearth::pool::launcher {

/// Makes the folder that is mounted at /.hearth (the agent, the filters, and the languages' drivers
/// from `hearth-drivers` beside the agent) below `parent`, unless it is there, and returns its
/// path. If the agent has its tenant's user, it also has the empty folder `start`, the mount point
/// for docker::SocketHandover. It is named after its content: running sandboxes keep the one that
/// they have mounted. Throws std::runtime_error if there is no agent or no drivers.
std::string installInside(const std::string& parent, const std::string& agent_path,
                          seccomp::AgentIdentity agent);

}  // namespace hearth::pool::launcher
