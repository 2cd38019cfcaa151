#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "controller/schedule/Cron.h"
#include "controller/schedule/TimeZone.h"

namespace hearth::controller {

/// The range of the number of warm sandboxes that a pool keeps.
struct WarmRange {
    std::uint32_t min = 0;
    std::uint32_t max = 0;

    bool operator==(const WarmRange&) const = default;
};

/// The numbers that a schedule sets; the pool's own apply if it sets none.
struct WarmChange {
    std::optional<std::uint32_t> min = {};
    std::optional<std::uint32_t> max = {};

    /// Applies the change. A number that is set overrides a conflicting one of the pool's own.
    WarmRange over(WarmRange own) const;
    bool operator==(const WarmChange&) const = default;
};

/// One entry of a pool's `schedules`.
struct Schedule {
    std::string name;
    Cron cron;
    TimeZone zone;
    std::chrono::milliseconds duration{0};  ///< zero: until the next entry without duration fires
    std::optional<WarmChange> warm;         ///< none: it only sweeps
    bool sweep = false;                     ///< a firing replaces the older warm sandboxes

    bool operator==(const Schedule&) const = default;
};
using Schedules = std::vector<Schedule>;

/// The entry in force at one moment, by its index in the list.
struct InForce {
    std::optional<std::size_t> entry;  ///< none: the pool's own numbers
    WallTime since = WallTime::min();  ///< its last firing, or the end of the last window
};

// All of these depend only on the entries and a wall time, so that a restart or a jump of
// the clock can neither lose nor repeat anything.

/// Returns the entry in force that fired last; of two at once, the later in the list.
InForce inForce(const Schedules& schedules, WallTime at);
/// Returns the range of warm sandboxes that the pool keeps at that time.
WarmRange warmRange(const Schedules& schedules, WarmRange own, WallTime at);
/// Returns the next moment with another entry in force; nullopt if none is near.
std::optional<WallTime> nextChange(const Schedules& schedules, WallTime after);
/// Returns the next firing or end of a window after `after`, even if it changes nothing.
std::optional<WallTime> nextMoment(const Schedules& schedules, WallTime after);

/// The last firing of a sweeping entry, if it is recent enough to be made up for.
struct Sweep {
    std::size_t entry = 0;
    WallTime at{};
};
std::optional<Sweep> sweepDue(const Schedules& schedules, WallTime at);

}  // namespace hearth::controller
