#include "metrics/TraceMetrics.h"

namespace hearth::metrics {

TraceMetrics::TraceMetrics(prometheus::Registry& registry)
    : exported_(prometheus::BuildCounter()
                    .Name("hearth_spans_exported_total")
                    .Help("Spans that the receiver of traces accepted")
                    .Register(registry)
                    .Add({})),
      dropped_(prometheus::BuildCounter()
                   .Name("hearth_spans_dropped_total")
                   .Help("Spans that were not delivered, by reason")
                   .Register(registry)) {
    for (const char* reason : {"queue_full", "refused", "unreachable"}) {
        dropped_.Add({{"reason", reason}});
    }
}

void TraceMetrics::exported(double spans) {
    exported_.Increment(spans);
}

void TraceMetrics::dropped(std::string_view reason, double spans) {
    dropped_.Add({{"reason", std::string(reason)}}).Increment(spans);
}

}  // namespace hearth::metrics
