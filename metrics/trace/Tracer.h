#pragma once

#include <optional>

#include "metrics/trace/Sampler.h"
#include "metrics/trace/Span.h"

namespace hearth::metrics {

/// Takes the spans of recorded traces. Thread-safe; never waits.
class SpanSink {
public:
    virtual ~SpanSink() = default;
    virtual void take(Span span) = 0;
};

/// Places in traces, and the way out of ended spans. Thread-safe.
class Tracer {
public:
    /// Records nothing. A caller's trace goes on through it as it came, with the caller's span: one
    /// of ours would be nowhere to be found.
    Tracer() = default;
    /// `sink` outlives it.
    Tracer(Sampler sampler, SpanSink& sink) : sampler_(sampler), sink_(&sink) {}

    /// Of the first span here: in the caller's trace where it has one, else in a new one.
    TraceContext begin(const std::optional<TraceContext>& caller) const;
    /// Of a span within another's.
    TraceContext within(const TraceContext& parent) const;
    /// Of a span that nobody waits for, to record with a link to what caused it. It is recorded if
    /// that was.
    TraceContext aside(const TraceContext& cause) const;

    /// False: making a span of it is for nothing.
    bool records(const TraceContext& context) const { return sink_ != nullptr && context.sampled; }
    /// The context, or none where it is not recorded: for whoever leads people to a trace.
    TraceContext recorded(const TraceContext& context) const;
    /// Drops it where records() is false.
    void end(Span span) const;

private:
    Sampler sampler_;
    SpanSink* sink_ = nullptr;
};

}  // namespace hearth::metrics
