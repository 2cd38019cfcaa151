#pragma once

#include <sys/un.h>

#include <string>

#include "base/Fd.h"

/// The socket by which a server speaks to an agent: made here, listened on by the agent. Failures
/// are std::system_error with the path.
namespace hearth::pool {

/// A listening stream socket at `path` with exactly this mode.
Fd listenAt(const std::string& path, mode_t mode);
/// A new connection to who listens at `path`.
Fd connectTo(const std::string& path);

}  // namespace hearth::pool
