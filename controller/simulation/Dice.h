#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <random>

namespace hearth::controller {

/// Random numbers that depend only on the seed, not on the standard library. Not thread-safe.
class Dice {
public:
    explicit Dice(std::uint64_t seed) : engine_(seed) {}

    /// A number above 0, at most 1.
    double uniform() {
        constexpr double kSteps = 9007199254740992.0;  // 2^53
        return (static_cast<double>(engine_() >> 11U) + 1) / kSteps;
    }
    double exponential(double mean) { return -mean * std::log(uniform()); }
    double logNormal(double median, double sigma) {
        const double normal =
            std::sqrt(-2 * std::log(uniform())) * std::cos(2 * std::numbers::pi * uniform());
        return median * std::exp(sigma * normal);
    }
    /// One of 1, 2, …, with this mean.
    std::size_t geometric(double mean) {
        std::size_t count = 1;
        while (uniform() > 1 / mean) ++count;
        return count;
    }

private:
    std::mt19937_64 engine_;
};

}  // namespace hearth::controller
