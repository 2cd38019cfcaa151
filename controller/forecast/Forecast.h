#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/Clock.h"
#include "controller/forecast/DayProfile.h"
#include "controller/forecast/LeadTimes.h"

namespace hearth::controller {

/// Both clocks at one time.
struct Moment {
    TimePoint now{};
    WallTime wall{};
};

/// The goal of a forecast, and its means.
struct Objective {
    double miss_rate = 0.001;
    unsigned slots = 1;     ///< sandboxes that may be started at once
    std::size_t most = 20;  ///< warm sandboxes
};

/// A forecast as published.
struct Outlook {
    double per_second = 0;    ///< claims that are expected
    double lead_seconds = 0;  ///< the mean time that a start takes
    double missed = 0;        ///< share of claims that found nothing ready, of those it remembers
    std::size_t target = 0;   ///< warm sandboxes
};

/// Says from one pool's claims and starts how many warm sandboxes it needs (docs/operating.md,
/// Sizing). Driven by the moments that it is given: each call costs the same, however many claims
/// there were. Not thread-safe.
class Forecast {
public:
    /// Claims since the last call, and how many of them found no ready sandbox.
    void arrived(const Moment& at, std::uint64_t claims, std::uint64_t missed);
    void started(std::chrono::nanoseconds took) { leads_.add(took); }
    /// The need now. Rises at once and falls slowly.
    Outlook look(const Moment& at, const Objective& objective);

private:
    /// Claims and seconds, of which older ones count less: a gamma distribution of the rate.
    struct Average {
        double lasts;  ///< seconds
        double claims = 0;
        double seconds = 0;
        double expected = 0;  ///< claims a second, at the beginning of the window
        double merit = 0;     ///< logarithm of how likely it made the claims of past windows
        void pass(double time);
    };
    /// The rate, and of how many claims it is known.
    struct Rate {
        double per_second = 0;
        double claims = 0;
    };
    static constexpr std::size_t kAverages = 4;

    void passTo(const Moment& at);
    /// The window and the `more` empty ones after it are over.
    void judgeWindow(const Moment& at, double length, double more);
    /// Each average leans on the next slower one, and the slowest on the time of day.
    std::array<Rate, kAverages> rates(WallTime at) const;
    /// Of all averages, weighted by their merits.
    Rate blend(WallTime at) const;
    /// How much of the share of misses may be used: more after few misses, less after many.
    double leave(double miss_rate) const;

    std::array<Average, kAverages> averages_{{{15}, {60}, {300}, {1800}}};
    Average long_{2.0 * 86'400};
    DayProfile day_;
    LeadTimes leads_;
    std::optional<TimePoint> last_;

    // Claims in windows of a lead time against what was expected of them.
    double window_seconds_ = 0;
    double window_claims_ = 0;
    double window_rate_ = 0;
    double surprise_ = 4;     ///< sum of squared differences; begins as if of a bursty pool
    double expectation_ = 2;  ///< sum of what was expected

    double claims_ = 0;  ///< remembered, and the missed ones among them
    double missed_ = 0;

    std::size_t held_ = 0;  ///< the target as it falls
    TimePoint lowered_{};
};

}  // namespace hearth::controller
