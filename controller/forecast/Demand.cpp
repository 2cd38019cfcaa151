#include "controller/forecast/Demand.h"

#include <algorithm>
#include <cmath>

namespace hearth::controller {
namespace {

/// Above this load the queue for slots only grows, so the result is the pool's max.
constexpr double kMostLoad = 0.98;
/// With less over-dispersion than this the process counts as Poisson.
constexpr double kLeastExcess = 1e-6;

}  // namespace

std::size_t Demand::sizeFor(double probability, std::size_t most) const {
    // A negative binomial with this mean and variance; Poisson if the variance is not larger.
    const double excess = variance - mean;
    const bool poisson = excess < kLeastExcess * mean || mean <= 0;
    const double shape = poisson ? 0 : mean * mean / excess;
    const double share = poisson ? 0 : excess / variance;
    double exactly = poisson ? std::exp(-mean) : std::pow(1 - share, shape);
    const double load = std::min(kMostLoad, mean / slots);
    const double queued = std::pow(load, 1 / std::max(1.0, slot_variation));
    double more = 1 - exactly;  // probability of more than n claims
    double waiting = 0;         // the same for claims that wait for a slot
    for (std::size_t n = 0; n < most; ++n) {
        if (n == slots) waiting = more;
        if (n > slots) waiting *= queued;
        if (std::max(more, waiting) <= probability) return n;
        const auto k = static_cast<double>(n);
        exactly *= poisson ? mean / (k + 1) : (k + shape) / (k + 1) * share;
        more = std::max(0.0, more - exactly);
    }
    return most;
}

}  // namespace hearth::controller
