#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "controller/schedule/Cron.h"
#include "controller/schedule/TimeZone.h"

namespace hearth::controller {

/// How many warm sandboxes a pool keeps.
struct WarmRange {
    std::uint32_t min = 0;
    std::uint32_t max = 0;

    bool operator==(const WarmRange&) const = default;
};

/// The numbers that a schedule sets; the pool's own stay where it sets none.
struct WarmChange {
    std::optional<std::uint32_t> min = {};
    std::optional<std::uint32_t> max = {};

    /// A number that is set wins over the pool's own other one.
    WarmRange over(WarmRange own) const;
    bool operator==(const WarmChange&) const = default;
};

/// One entry of a pool's `schedules`.
struct Schedule {
    std::string name;
    Cron cron;
    TimeZone zone;
    std::chrono::milliseconds duration{0};  ///< zero: until the next entry without one fires
    std::optional<WarmChange> warm;         ///< none: it only sweeps
    bool sweep = false;                     ///< warm sandboxes from before a firing are replaced

    bool operator==(const Schedule&) const = default;
};
using Schedules = std::vector<Schedule>;

/// The entry in force at one moment, by its place in the list.
struct InForce {
    std::optional<std::size_t> entry;  ///< none: the pool's own numbers
    WallTime since = WallTime::min();  ///< its last firing, or the end of the last window
};

// All of these are functions of the entries and a wall time alone, so that a restart or a jump of
// the clock can neither lose nor repeat anything.

/// Of all entries that hold, the one that fired last; of two at once, the later in the list.
InForce inForce(const Schedules& schedules, WallTime at);
/// The sandboxes that the pool keeps warm at that time.
WarmRange warmRange(const Schedules& schedules, WarmRange own, WallTime at);
/// The next moment with another entry in force; nullopt where none is near.
std::optional<WallTime> nextChange(const Schedules& schedules, WallTime after);
/// The next firing or end of a window after `after`, whatever it changes.
std::optional<WallTime> nextMoment(const Schedules& schedules, WallTime after);

/// The last firing of an entry that sweeps, if it is recent enough to be made up for.
struct Sweep {
    std::size_t entry = 0;
    WallTime at{};
};
std::optional<Sweep> sweepDue(const Schedules& schedules, WallTime at);

}  // namespace hearth::controller
