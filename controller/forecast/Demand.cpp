#include "controller/forecast/Demand.h"

#include <algorithm>
#include <cmath>

namespace hearth::controller {
namespace {

/// Above this load the queue for slots only grows; the pool's max is the answer then.
constexpr double kMostLoad = 0.98;
/// Less over-dispersion than this is a Poisson process.
constexpr double kLeastExcess = 1e-6;

}  // namespace

std::size_t Demand::sizeFor(double probability, std::size_t most) const {
    // A negative binomial of that mean and variance; with no more variance than the mean, Poisson.
    const double excess = variance - mean;
    const bool poisson = excess < kLeastExcess * mean || mean <= 0;
    const double shape = poisson ? 0 : mean * mean / excess;
    const double share = poisson ? 0 : excess / variance;
    double exactly = poisson ? std::exp(-mean) : std::pow(1 - share, shape);
    const double load = std::min(kMostLoad, mean / slots);
    const double queued = std::pow(load, 1 / std::max(1.0, slot_variation));
    double more = 1 - exactly;  // more than n
    double waiting = 0;         // the same of those that stand in line for a slot
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
