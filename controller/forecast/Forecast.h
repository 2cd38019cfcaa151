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

/// The readings of both clocks at one time.
struct Moment {
    TimePoint now{};
    WallTime wall{};
};

/// The goal of a forecast, and its limits.
struct Objective {
    double miss_rate = 0.001;
    unsigned slots = 1;     ///< sandboxes that may be started at once
    std::size_t most = 20;  ///< warm sandboxes
};

/// A forecast as published.
struct Outlook {
    double per_second = 0;    ///< expected claims
    double lead_seconds = 0;  ///< the mean duration of a start
    double missed = 0;        ///< the share of remembered claims that found nothing ready
    std::size_t target = 0;   ///< warm sandboxes
};

/// Computes from one pool's claims and starts how many warm sandboxes it needs (docs/operating.md,
/// Sizing). Time comes only from the given moments. Each call costs the same, however many claims
/// there were. Not thread-safe.
class Forecast {
public:
    /// Adds the claims since the last call, and how many of them found no ready sandbox.
    void arrived(const Moment& at, std::uint64_t claims, std::uint64_t missed);
    void started(std::chrono::nanoseconds took) { leads_.add(took); }
    /// Returns the present need. The target rises at once and falls slowly.
    Outlook look(const Moment& at, const Objective& objective);

private:
    /// Claims and seconds; older ones count less: a gamma distribution of the rate.
    struct Average {
        double lasts;  ///< seconds
        double claims = 0;
        double seconds = 0;
        double expected = 0;  ///< claims per second, at the beginning of the window
        double merit = 0;     ///< log-likelihood of the claims of past windows
        void pass(double time);
    };
    /// The rate, and the number of claims that it was learned from.
    struct Rate {
        double per_second = 0;
        double claims = 0;
    };
    static constexpr std::size_t kAverages = 4;

    void passTo(const Moment& at);
    /// Judges the window that has ended and the `more` empty ones after it.
    void judgeWindow(const Moment& at, double length, double more);
    /// Each average uses the next slower one as its prior, the slowest uses the time of day.
    std::array<Rate, kAverages> rates(WallTime at) const;
    /// The mean of all averages, weighted by their merits.
    Rate blend(WallTime at) const;
    /// The factor on the allowed share of misses: above 1 after few misses, below 1 after many.
    double leave(double miss_rate) const;

    std::array<Average, kAverages> averages_{{{15}, {60}, {300}, {1800}}};
    Average long_{2.0 * 86'400};
    DayProfile day_;
    LeadTimes leads_;
    std::optional<TimePoint> last_;

    // Claims in windows of one lead time, compared with the expected claims.
    double window_seconds_ = 0;
    double window_claims_ = 0;
    double window_rate_ = 0;
    double surprise_ = 4;     ///< sum of squared differences; starts as for a bursty pool
    double expectation_ = 2;  ///< sum of expected claims

    double claims_ = 0;  ///< remembered claims, and the missed ones of them
    double missed_ = 0;

    std::size_t held_ = 0;  ///< the slowly falling target
    TimePoint lowered_{};
};

}  // namespace hearth::controller
