#pragma once

#include <cstdint>

namespace hearth::pool::launcher {

/// Lets this process's programs lock this much memory, or as much as the machine allows; returns
/// the amount. A sandbox cannot raise its own limit, not even while it is made.
std::uint64_t allowLockedMemory(std::uint64_t bytes);

}  // namespace hearth::pool::launcher
