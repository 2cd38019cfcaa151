#pragma once

#include <cstddef>
#include <vector>

namespace hearth::cli {

/// The statistics of a series of measurements, in their unit.
struct Summary {
    std::size_t samples = 0;
    double least = 0;
    double mean = 0;
    double p50 = 0;
    double p90 = 0;
    double p99 = 0;
    double most = 0;
};

/// Returns the value below which a share `q` (0 to 1) of the sorted values lies, interpolated
/// between the two nearest; 0 for no values.
double percentile(const std::vector<double>& sorted, double q);
Summary summarize(std::vector<double> values);

}  // namespace hearth::cli
