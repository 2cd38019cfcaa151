#include "tests/bench/program/measure/Statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace hearth::cli {

double percentile(const std::vector<double>& sorted, double q) {
    if (sorted.empty()) return 0;
    const double place = std::clamp(q, 0.0, 1.0) * static_cast<double>(sorted.size() - 1);
    const auto below = static_cast<std::size_t>(std::floor(place));
    const std::size_t above = std::min(below + 1, sorted.size() - 1);
    const double share = place - static_cast<double>(below);
    return sorted[below] + (sorted[above] - sorted[below]) * share;
}

Summary summarize(std::vector<double> values) {
    Summary summary;
    if (values.empty()) return summary;
    std::ranges::sort(values);
    summary.samples = values.size();
    summary.least = values.front();
    summary.most = values.back();
    summary.mean =
        std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
    summary.p50 = percentile(values, 0.50);
    summary.p90 = percentile(values, 0.90);
    summary.p99 = percentile(values, 0.99);
    return summary;
}

}  // namespace hearth::cli
