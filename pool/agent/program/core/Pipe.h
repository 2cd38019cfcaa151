#pragma once

#include <fcntl.h>
#include <unistd.h>

#include "base/Fd.h"

namespace hearth::agent {

/// Makes a pipe that no exec inherits; false, with errno, if there is no descriptor left.
inline bool makePipe(Fd& read_end, Fd& write_end) {
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
