#pragma once

#include <string>

namespace hearth::metrics {

/// The standard `process_*` series of this process as Prometheus text (prometheus-cpp has none).
std::string renderProcessStats();

}  // namespace hearth::metrics
