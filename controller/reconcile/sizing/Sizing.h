#pragma once

#include <cstddef>

#include "base/Clock.h"
#include "controller/forecast/Forecast.h"
#include "controller/schedule/Schedule.h"
#include "controller/spec/PoolSpec.h"

namespace hearth::controller {

/// The facts for a sizing rule.
struct SizingInput {
    const PoolSpec& spec;
    WallTime now;
    Outlook outlook = {};  ///< with sizing Predictive: the present forecast
};

/// Returns the objective of the pool's forecast.
Objective objectiveOf(const PoolSpec& spec);

/// How long a warm sandbox above the wanted number is kept, so that a burst's refill is not undone
/// at once.
inline constexpr auto kSurplusKept = std::chrono::seconds(60);

/// Returns how many warm sandboxes one rule wants now; 0 if it has no opinion. Pure. A new rule is
/// a file beside this one, its declaration below and its name in the list of Sizing.cpp.
using SizingRule = std::size_t (*)(const SizingInput&);

/// Returns the pool's range, or the range of its schedule in force (ScheduledRange.cpp).
WarmRange rangeNow(const SizingInput& input);

/// Returns `warm.min` of the pool, or of its schedule in force.
std::size_t staticFloor(const SizingInput& input);

/// Returns the number that the forecast needs, with sizing Predictive; else 0.
std::size_t predictive(const SizingInput& input);

/// Returns how many warm sandboxes the pool should have now: the most that any rule wants, at most
/// `warm.max` of the range in force.
std::size_t desiredWarm(const SizingInput& input);

/// Returns how many unclaimed sandboxes the pool should have now, if `desired` are to be warm and
/// waiting claims need `needed` more: each claim gets one made, with onEmpty Queue within the
/// range's most (at least one), with Create beyond it, within limits.members.
std::size_t wantedUnclaimed(const SizingInput& input, std::size_t desired, std::size_t needed);

/// The most that wantedUnclaimed() returns for any need.
std::size_t mostUnclaimed(const SizingInput& input);

}  // namespace hearth::controller
