#pragma once

#include <array>
#include <string>

namespace hearth::cli {

/// The 1, 5 and 15 minute load averages.
std::array<double, 3> loadAverage();
/// The share of all processors (0 to 1) that others use, or the hypervisor takes, while this
/// program sleeps for a second.
double busyShare();
unsigned processors();
/// "Linux 6.1.0 x86_64".
std::string kernelName();

}  // namespace hearth::cli
