#pragma once

#include <cstddef>

namespace hearth::controller {

/// The claims of one lead time as a random number, and what starts them again.
struct Demand {
    double mean = 0;
    double variance = 0;        ///< at least the mean
    unsigned slots = 1;         ///< sandboxes that may be started at once
    double slot_variation = 1;  ///< of a queue for them: mean of both squared variations

    /// The smallest number of sandboxes, at most `most`, that claims exceed with at most this
    /// probability.
    std::size_t sizeFor(double probability, std::size_t most) const;
};

}  // namespace hearth::controller
