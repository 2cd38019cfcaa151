#pragma once

#include <array>
#include <string>

namespace hearth::cli {

/// Returns the load averages of 1, 5 and 15 minutes.
std::array<double, 3> loadAverage();
/// Returns the share of all processors (0 to 1) that others use, or that the hypervisor takes,
/// while this program sleeps for a second.
double busyShare();
unsigned processors();
/// Returns "Linux 6.1.0 x86_64".
std::string kernelName();

}  // namespace hearth::cli
