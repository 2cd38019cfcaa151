#include "metrics/trace/Tracer.h"

#include <utility>

namespace hearth::metrics {

TraceContext Tracer::begin(const std::optional<TraceContext>& caller) const {
    if (sink_ == nullptr && caller) return *caller;
    TraceContext made;
    made.trace_id = caller ? caller->trace_id : newTraceId();
    made.span_id = newSpanId();
    made.sampled = sink_ != nullptr && sampler_.takes(caller, made.trace_id);
    if (caller) made.state = caller->state;
    return made;
}

TraceContext Tracer::within(const TraceContext& parent) const {
    if (sink_ == nullptr) return parent;
    TraceContext made = parent;
    made.span_id = newSpanId();
    return made;
}

TraceContext Tracer::aside(const TraceContext& cause) const {
    return {newTraceId(), newSpanId(), cause.sampled, ""};
}

TraceContext Tracer::recorded(const TraceContext& context) const {
    return records(context) ? context : TraceContext();
}

void Tracer::end(Span span) const {
    if (records(span.context)) sink_->take(std::move(span));
}

}  // namespace hearth::metrics
