#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/registry.h>

#include <string_view>

namespace hearth::metrics {

/// Counts the spans that were exported or dropped. Thread-safe.
class TraceMetrics {
public:
    explicit TraceMetrics(prometheus::Registry& registry);

    void exported(double spans);
    /// `reason`: queue_full (they came faster than they could be sent), refused (by the receiver),
    /// unreachable (tried until the batch's time limit).
    void dropped(std::string_view reason, double spans);

private:
    prometheus::Counter& exported_;
    prometheus::Family<prometheus::Counter>& dropped_;
};

}  // namespace hearth::metrics
