#pragma once

#include <array>
#include <chrono>
#include <cstddef>

namespace hearth::controller {

/// The durations of the last starts of a pool's sandboxes. Not thread-safe.
class LeadTimes {
public:
    void add(std::chrono::nanoseconds took);
    bool empty() const { return count_ == 0; }
    /// In seconds; 0 while empty.
    double mean() const;
    /// The variance divided by the square of the mean; 0 while empty.
    double dispersion() const;

private:
    static constexpr std::size_t kKept = 128;

    std::array<double, kKept> seconds_{};
    std::size_t count_ = 0;  ///< at most kKept
    std::size_t next_ = 0;
    double sum_ = 0;
    double squares_ = 0;
};

}  // namespace hearth::controller
