#include "metrics/trace/Tracer.h"

#include <utility>

namespace hearth::metrics {

TraceContext Tracer::begin(const std::optional<TraceContext>& caller) const {
    TraceContext made;
    made.trace_id = caller ? caller->trace_id : newTraceId();
    made.span_id = newSpanId();
    // What is not recorded here may be elsewhere: the caller's flag goes on as it came.
    made.sampled =
        sink_ != nullptr ? sampler_.takes(caller, made.trace_id) : caller && caller->sampled;
    if (caller) made.state = caller->state;
    return made;
}

TraceContext Tracer::within(const TraceContext& parent) const {
    TraceContext made = parent;
    made.span_id = newSpanId();
    return made;
}

TraceContext Tracer::aside(const TraceContext& cause) const {
    return {newTraceId(), newSpanId(), cause.sampled, ""};
}

void Tracer::end(Span span) const {
    if (records(span.context)) sink_->take(std::move(span));
}

}  // namespace hearth::metrics
