#pragma once

#include <sys/un.h>

#include <string>

#include "base/Fd.h"

/// The Unix socket between a server and an agent: created here, listened on by the agent. Failures
/// are std::system_error with the path.
namespace hearth::pool {

/// Returns a listening stream socket at `path` with exactly this mode.
Fd listenAt(const std::string& path, mode_t mode);
/// Returns a new connection to the listener at `path`.
Fd connectTo(const std::string& path);

}  // namespace hearth::pool
