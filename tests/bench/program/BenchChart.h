#pragma once

#include <string>

#include "tests/bench/program/BenchReport.h"

namespace hearth::cli {

/// The rounds of a report as an SVG picture that needs nothing else: for each operation a bar of
/// Hearth's median and, where it was measured, one of Docker's, on a logarithmic axis, with a line
/// to the 99th percentile and the ratio of the medians. Its colours follow the reader's light or
/// dark theme. The report must have rows with times of Hearth's.
std::string benchChart(const BenchReport& report);

}  // namespace hearth::cli
