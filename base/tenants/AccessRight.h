#pragma once

#include <chrono>
#include <optional>
#include <stop_token>

#include "base/Clock.h"

namespace hearth {

/// The right that admitted a request. It may end while the answer is still under way. A
/// default-constructed right never ends.
struct AccessRight {
    std::stop_token withdrawn;  ///< requested from any thread once the right is taken away
    std::optional<WallTime> expires{};

    /// How long it still holds by the clocks' present time: max() if it has no end, zero or less if
    /// it has ended. Thread-safe.
    std::chrono::nanoseconds left(const Clock& clock) const {
        if (withdrawn.stop_requested()) return {};
        return expires ? *expires - clock.wall() : std::chrono::nanoseconds::max();
    }
    bool holds(const Clock& clock) const { return left(clock) > std::chrono::nanoseconds::zero(); }
    /// When it ends by its time limit.
    TimePoint until(const Clock& clock) const {
        const std::chrono::nanoseconds rest = left(clock);
        const TimePoint now = clock.now();
        return rest > TimePoint::max() - now ? TimePoint::max() : now + rest;
    }
};

}  // namespace hearth
