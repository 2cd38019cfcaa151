#pragma once

#include <cstdint>

#include "base/Json.h"

namespace hearth::pool::launcher {

/// Ids in one sandbox's range, and their users inside.
inline constexpr std::uint32_t kRangeSize = 65'536;
inline constexpr std::uint32_t kTenantUid = 1000;

/// The paths of /proc and /sys that sandboxes cannot see, and those they cannot change.
Json maskedPaths();
Json readonlyPaths();

}  // namespace hearth::pool::launcher
