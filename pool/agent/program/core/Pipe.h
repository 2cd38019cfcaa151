#pragma once

#include <fcntl.h>
#include <unistd.h>

#include "base/Fd.h"
#include "pool/agent/program/core/Settings.h"

namespace hearth::agent {

/// Makes a pipe that no exec inherits; false, with errno, if there is no descriptor left. It is the
/// tenant's: programs open theirs again by a path, /dev/stdin or /proc/self/fd/1.
inline bool makePipe(const Settings& settings, Fd& read_end, Fd& write_end) {
    const TenantFiles as_tenant(settings);
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0) return false;
    read_end = Fd(fds[0]);
    write_end = Fd(fds[1]);
    return true;
}

/// For the agent's end of a pipe or socket whose other end a tenant holds.
inline void setNonBlocking(const Fd& fd) {
    if (fd) fcntl(fd.get(), F_SETFL, fcntl(fd.get(), F_GETFL) | O_NONBLOCK);
}

}  // namespace hearth::agent
