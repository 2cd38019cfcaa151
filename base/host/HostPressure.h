#pragma once

#include <optional>
#include <string>

namespace hearth {

/// How much some task of this machine waited for each resource, as the kernel counts it ("some" of
/// https://docs.kernel.org/accounting/psi.html).
struct HostPressure {
    double cpu = 0;
    double memory = 0;
    double io = 0;
};

/// Returns the share of the last ten seconds, in percent. Reads three files, in some 20
/// microseconds; nullopt if the kernel does not report it.
std::optional<HostPressure> hostPressure(const std::string& folder = "/proc/pressure");
/// Returns the stalls since boot, in seconds.
std::optional<HostPressure> hostStalls(const std::string& folder = "/proc/pressure");

}  // namespace hearth
