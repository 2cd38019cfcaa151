#pragma once

#include <prometheus/metric_family.h>

#include <vector>

namespace hearth::metrics {

/// The standard `process_*` series of this process, as they are now (prometheus-cpp has none), and
/// hearth_host_pressure_seconds_total if the kernel reports it.
std::vector<prometheus::MetricFamily> processStats();

}  // namespace hearth::metrics
