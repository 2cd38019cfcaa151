#pragma once

#include <prometheus/metric_family.h>

#include <vector>

namespace hearth::metrics {

/// The standard `process_*` series of this process, as they are now (prometheus-cpp has none).
std::vector<prometheus::MetricFamily> processStats();

}  // namespace hearth::metrics
