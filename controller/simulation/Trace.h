#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/Clock.h"

namespace hearth::controller {

/// The arrivals of claims at one pool.
struct Trace {
    std::string name;
    WallTime start{};        ///< the time of day matters to a forecast
    std::vector<double> at;  ///< seconds since the start, ascending
    double seconds() const { return at.empty() ? 0 : at.back(); }
};

/// The start of traces without one: a Monday, 00:00 UTC.
WallTime traceEpoch();

/// Reads a trace: one arrival per line, in seconds since the start or as RFC 3339 in UTC,
/// ascending. Empty lines and lines that begin with # are skipped. Throws Error(InvalidArgument)
/// with `source`, the line and the value.
Trace readTrace(std::string_view text, const std::string& source);

}  // namespace hearth::controller
