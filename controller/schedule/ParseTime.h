#pragma once

#include <optional>
#include <string>

#include "base/Clock.h"

namespace hearth::controller {

/// Parses "2026-11-25T20:00:00Z", with or without seconds, and with any offset from UTC, from the
/// year 1700 to 2249.
std::optional<WallTime> parseTime(const std::string& text);

}  // namespace hearth::controller
