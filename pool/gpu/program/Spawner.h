#pragma once

#include <string>
#include <vector>

#include "base/Fd.h"

namespace hearth::pool::gpu {

/// The options that the server's helper passes to each program it starts.
struct SpawnerOptions {
    std::vector<std::string> arguments;  ///< come after the command
    int socket = 3;                      ///< its connection to the server: see GpuHelper.h
};

/// Starts this program again for each request, until the server's end of the socket closes; then
/// kills the running programs. No driver is loaded here. One thread. Throws std::system_error.
void serveRequests(const SpawnerOptions& options);

}  // namespace hearth::pool::gpu
