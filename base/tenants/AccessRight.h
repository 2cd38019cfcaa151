#pragma once

#include <chrono>
#include <optional>
#include <stop_token>

#include "base/Clock.h"

namespace hearth {

/// The right by which a request was let in. It may end while its answer is still under way. One
/// that is made without anything never ends.
struct AccessRight {
    std::stop_token withdrawn;  ///< requested from any thread once the right is taken away
    std::optional<WallTime> expires{};

    /// For how long it still holds as the clocks stand now: max() where it has no end, and not more
    /// than zero where it has ended. Thread-safe.
    std::chrono::nanoseconds left(const Clock& clock) const {
        if (withdrawn.stop_requested()) return {};
        return expires ? *expires - clock.wall() : std::chrono::nanoseconds::max();
    }
    bool holds(const Clock& clock) const { return left(clock) > std::chrono::nanoseconds::zero(); }
    /// When it ends by its time.
    TimePoint until(const Clock& clock) const {
        const std::chrono::nanoseconds rest = left(clock);
        const TimePoint now = clock.now();
        return rest > TimePoint::max() - now ? TimePoint::max() : now + rest;
    }
};

}  // namespace hearth
