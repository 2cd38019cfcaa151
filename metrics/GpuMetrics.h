#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <string>
#include <string_view>

namespace hearth::metrics {

/// The series of GPUs. Thread-safe.
class GpuMetrics {
public:
    explicit GpuMetrics(prometheus::Registry& registry);

    void devices(std::string_view state, double count);
    void scrub(bool clean, double seconds);
    /// The time that devices were leased to unclaimed sandboxes.
    void idle(const std::string& pool, double gpu_seconds);
    void forgetPool(const std::string& pool);

private:
    prometheus::Family<prometheus::Gauge>& devices_;
    prometheus::Family<prometheus::Histogram>& scrubs_;
    prometheus::Family<prometheus::Counter>& idle_;
};

}  // namespace hearth::metrics
