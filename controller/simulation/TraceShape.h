#pragma once

#include <cstddef>
#include <cstdint>

#include "base/Texts.h"
#include "controller/simulation/Trace.h"

namespace hearth::controller {

/// Shapes of public traces, as processes whose numbers are in TraceShape.cpp.
enum class TraceShape : std::uint8_t {
    Diurnal,  ///< Poisson whose rate follows working days, by day up to two a second
    Bursty,   ///< each claim makes others likelier for half a minute; starts come in batches
    Rare,     ///< minutes of silence, and sometimes another at once
};
inline constexpr Texts<TraceShape, 3> kTraceShapes{{"diurnal", "bursty", "rare"}};

/// How many claims a trace of the shape has if nothing else is said: 100,000 or more.
std::size_t usualClaims(TraceShape shape);

/// The same seed makes the same trace, on every machine.
Trace makeTrace(TraceShape shape, std::uint64_t seed, std::size_t claims);

}  // namespace hearth::controller
