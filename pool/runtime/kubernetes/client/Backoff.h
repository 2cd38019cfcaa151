#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>

namespace hearth::pool::kubernetes {

/// Delays after consecutive failures: 0.8 s, doubling to 30 s, each with full jitter, so that many
/// clients of a returning server do not all call at once. Not thread-safe.
class Backoff {
public:
    /// `random` returns numbers from 0 to below 1.
    explicit Backoff(std::function<double()> random) : random_(std::move(random)) {}

    std::chrono::nanoseconds next() {
        constexpr double kFirst = 0.8;
        constexpr double kLongest = 30;
        const double most = std::min(kLongest, kFirst * static_cast<double>(1U << failures_));
        failures_ = std::min(failures_ + 1, 6U);
        return std::chrono::duration_cast<std::chrono::nanoseconds>(
            std::chrono::duration<double>(most * random_()));
    }
    void reset() noexcept { failures_ = 0; }

private:
    std::function<double()> random_;
    unsigned failures_ = 0;
};

}  // namespace hearth::pool::kubernetes
