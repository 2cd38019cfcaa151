#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/Json.h"

namespace hearth::pool::launcher {

/// Ids in one sandbox's range, and their users inside.
inline constexpr std::uint32_t kRangeSize = 65'536;
inline constexpr std::uint32_t kTenantUid = 1000;

/// The paths of /proc and /sys that sandboxes cannot see, and the paths they cannot change. `gpus`
/// are the uuids of a sandbox's own: a MIG instance is found by the driver's entries in /proc.
Json maskedPaths(const std::vector<std::string>& gpus);
Json readonlyPaths();

}  // namespace hearth::pool::launcher
