#pragma once

#include <string>
#include <vector>

#include "controller/simulation/Comparison.h"

namespace hearth::controller {

/// An SVG of bars: the idle time of each way of sizing, a row for each trace.
std::string chartOf(const std::vector<Comparison>& rows);

}  // namespace hearth::controller
