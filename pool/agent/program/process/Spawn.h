#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/Fd.h"
#include "pool/agent/program/core/Settings.h"

namespace hearth::agent {

/// A process to start. Environment entries are `NAME=value`.
struct SpawnRequest {
    std::vector<std::string> argv;
    std::vector<std::string> env;
    std::string cwd;
    gid_t label = 0;
    bool with_stdin = false;
    bool pty = false;
    unsigned short cols = 80;
    unsigned short rows = 24;
    int input = -1;  ///< becomes standard input; -1: by with_stdin
    /// Becomes the process's descriptor kChannelFd; -1 for none.
    int channel = -1;
    /// A zygote has the filter under which its children can mark themselves, and the kernel's
    /// out-of-memory killer takes it after the processes of the work.
    bool zygote = false;
};

inline constexpr int kChannelFd = 3;

/// A started process and this end of its pipes; with a PTY, `input` and `output` are the master.
struct Spawned {
    pid_t pid = -1;
    Fd input;
    Fd output;
    Fd errors;
};

/// Starts a tenant process with the tenant's identity, no capability, no new privileges, the label
/// and the filter. Returns null, or the reason of the failure. A program that cannot be executed is
/// no such failure: as in a shell it ends with 127 or 126 and gives the reason on stderr.
///
/// It forks (not vforks): between its change of identity and its exec any other process of the
/// tenant can stop a vforked child, and that would stop the agent with it.
const char* spawn(const Settings& settings, const SpawnRequest& request, Spawned& out);

}  // namespace hearth::agent
