#pragma once

#include <cstdint>

namespace hearth::pool::launcher {

/// Lets what this process runs lock as much memory as that, or as much as the machine allows it;
/// gives how much. A sandbox cannot raise its own limit, not even as it is made.
std::uint64_t allowLockedMemory(std::uint64_t bytes);

}  // namespace hearth::pool::launcher
