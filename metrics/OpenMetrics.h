#pragma once

#include <prometheus/metric_family.h>

#include <string>
#include <vector>

#include "metrics/Exemplars.h"

namespace hearth::metrics {

/// The content type of an answer in this format.
inline constexpr const char* kOpenMetricsType =
    "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// True if a scraper's Accept header prefers OpenMetrics to the older text format.
bool asksForOpenMetrics(const std::string& accept);

/// The OpenMetrics text format 1.0, with exemplars on the buckets of histograms; prometheus-cpp
/// writes the older format only. Source: the specification of OpenMetrics 1.0.
std::string renderOpenMetrics(const std::vector<prometheus::MetricFamily>& families,
                              const Exemplars& exemplars);

}  // namespace hearth::metrics
