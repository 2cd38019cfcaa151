#pragma once

#include <string>
#include <vector>

#include "controller/simulation/Comparison.h"

namespace hearth::controller {

/// Returns an SVG bar chart: the idle time of each sizing method, one row per trace.
std::string chartOf(const std::vector<Comparison>& rows);

}  // namespace hearth::controller
