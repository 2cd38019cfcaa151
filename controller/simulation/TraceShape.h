#pragma once

#include <cstddef>
#include <cstdint>

#include "base/Texts.h"
#include "controller/simulation/Trace.h"

namespace hearth::controller {

/// Shapes of public traces, as random processes; their numbers are in TraceShape.cpp.
enum class TraceShape : std::uint8_t {
    Diurnal,  ///< Poisson, with a rate that follows working days, up to two per second
    Bursty,   ///< each claim makes more claims likely for half a minute; in batches
    Rare,     ///< minutes of silence, sometimes another claim at once
};
inline constexpr Texts<TraceShape, 3> kTraceShapes{{"diurnal", "bursty", "rare"}};

/// The default number of claims in a trace of this shape: 100,000 or more.
std::size_t usualClaims(TraceShape shape);

/// The same seed makes the same trace, on every machine.
Trace makeTrace(TraceShape shape, std::uint64_t seed, std::size_t claims);

}  // namespace hearth::controller
