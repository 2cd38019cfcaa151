#pragma once

#include <string>
#include <vector>

#include "base/Fd.h"

namespace hearth::pool::gpu {

/// The options of the server's helper, which starts the programs.
struct SpawnerOptions {
    std::vector<std::string> arguments;  ///< each program gets them after its command
    int socket = 3;                      ///< the helper's connection to the server: see GpuHelper.h
};

/// Starts this program again for each request, until the server's end of the socket closes; then
/// kills the running programs. No driver is loaded here. One thread. Throws std::system_error.
void serveRequests(const SpawnerOptions& options);

}  // namespace hearth::pool::gpu
