#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/registry.h>

#include <string_view>

namespace hearth::metrics {

/// What became of spans. Thread-safe.
class TraceMetrics {
public:
    explicit TraceMetrics(prometheus::Registry& registry);

    void exported(double spans);
    /// `reason`: queue_full (they came faster than they could be sent), refused (by the receiver),
    /// unreachable (it was tried for as long as a batch may take).
    void dropped(std::string_view reason, double spans);

private:
    prometheus::Counter& exported_;
    prometheus::Family<prometheus::Counter>& dropped_;
};

}  // namespace hearth::metrics
