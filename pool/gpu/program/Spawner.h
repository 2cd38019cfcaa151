#pragma once

#include <string>
#include <vector>

#include "base/Fd.h"

namespace hearth::pool::gpu {

/// The server's helper gives this to each program that it starts.
struct SpawnerOptions {
    std::vector<std::string> arguments;  ///< put after the command
    int socket = 3;                      ///< to the server: see GpuHelper.h
};

/// Starts this program again for each request, until the server's end of the socket is closed; what
/// runs then is killed. Nothing of a driver is loaded here. One thread. Throws std::system_error.
void serveRequests(const SpawnerOptions& options);

}  // namespace hearth::pool::gpu
