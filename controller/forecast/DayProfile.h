#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include "base/Clock.h"

namespace hearth::controller {

/// How many claims a second there are at each time of the day (UTC), as earlier days had them.
/// Recent days count most. Not thread-safe.
class DayProfile {
public:
    void add(WallTime at, double claims);
    /// Nullopt while no whole day with that time of day has been seen.
    std::optional<double> rate(WallTime at) const;

private:
    static constexpr std::size_t kBins = 96;
    static constexpr std::chrono::seconds kBin{86'400 / kBins};

    void moveTo(WallTime at);

    std::array<std::optional<double>, kBins> rates_{};
    std::optional<std::int64_t> bin_;  ///< the present one, counted from the epoch
    bool whole_ = false;               ///< it was seen from its beginning
    double claims_ = 0;                ///< in it
};

}  // namespace hearth::controller
