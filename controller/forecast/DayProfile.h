#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include "base/Clock.h"

namespace hearth::controller {

/// The claims per second at each time of the day (UTC), learned from earlier days. Recent days
/// count most. Not thread-safe.
class DayProfile {
public:
    void add(WallTime at, double claims);
    /// Nullopt until a whole bin at that time of day has passed.
    std::optional<double> rate(WallTime at) const;

private:
    static constexpr std::size_t kBins = 96;
    static constexpr std::chrono::seconds kBin{86'400 / kBins};

    void moveTo(WallTime at);

    std::array<std::optional<double>, kBins> rates_{};
    std::optional<std::int64_t> bin_;  ///< the present bin, counted from the epoch
    bool whole_ = false;               ///< the bin was observed from its beginning
    double claims_ = 0;                ///< in the present bin
};

}  // namespace hearth::controller
