#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hearth::cli {

/// What one process of Hearth's holds.
struct ProcessMemory {
    pid_t pid = 0;
    std::string role;  ///< "server", "launcher", "agent"
    std::uint64_t pss_bytes = 0;
};

/// The server (`pid`, or every `hearth serve` of the machine), its children and the agents of the
/// sandboxes, by proportional set size. Processes whose memory may not be read are left out.
std::vector<ProcessMemory> hearthMemory(std::optional<pid_t> pid);

/// The 1, 5 and 15 minute load averages.
std::array<double, 3> loadAverage();
/// The share of all processors (0 to 1) that others use while this program sleeps for half a
/// second.
double busyShare();

}  // namespace hearth::cli
