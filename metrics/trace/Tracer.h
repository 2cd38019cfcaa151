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

/// Makes contexts in traces, and passes on ended spans. Thread-safe.
class Tracer {
public:
    /// Records nothing. A caller's trace passes through unchanged, with the caller's span: nobody
    /// could find a span of this server.
    Tracer() = default;
    /// `sink` outlives it.
    Tracer(Sampler sampler, SpanSink& sink) : sampler_(sampler), sink_(&sink) {}

    /// The context of the first span here: in the caller's trace if it has one, else in a new one.
    TraceContext begin(const std::optional<TraceContext>& caller) const;
    /// The context of a span inside another one.
    TraceContext within(const TraceContext& parent) const;
    /// The context of a span that nobody waits for, to be recorded with a link to its cause. It is
    /// recorded if the cause was.
    TraceContext aside(const TraceContext& cause) const;

    /// If false, making a span for it is useless.
    bool records(const TraceContext& context) const { return sink_ != nullptr && context.sampled; }
    /// The context, or an empty one if it is not recorded: for references that people follow.
    TraceContext recorded(const TraceContext& context) const;
    /// Passes the span on; drops it if records() is false.
    void end(Span span) const;

private:
    Sampler sampler_;
    SpanSink* sink_ = nullptr;
};

}  // namespace hearth::metrics
