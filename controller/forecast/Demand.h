#pragma once

#include <cstddef>

namespace hearth::controller {

/// The claims during one lead time as a random number, and the limits on new starts.
struct Demand {
    double mean = 0;
    double variance = 0;        ///< at least the mean
    unsigned slots = 1;         ///< sandboxes that may be started at once
    double slot_variation = 1;  ///< of a queue for slots: mean of both squared variations

    /// Returns the smallest number of sandboxes, at most `most`, that the claims exceed with at
    /// most this probability.
    std::size_t sizeFor(double probability, std::size_t most) const;
};

}  // namespace hearth::controller
