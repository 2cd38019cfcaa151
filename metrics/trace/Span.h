#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/Clock.h"
#include "base/trace/TraceContext.h"

namespace hearth::metrics {

/// A name of the OpenTelemetry semantic conventions, or of ours ("hearth.…"), and its value.
struct Attribute {
    std::string_view key;  ///< a literal: a span is made often, and sent much later
    std::variant<std::string, std::int64_t, double, bool> value;
};
using Attributes = std::vector<Attribute>;

/// What all spans of a server are of: names and texts.
using Resource = std::vector<std::pair<std::string, std::string>>;

/// The numbers are OTLP's.
enum class SpanKind : std::uint8_t { Internal = 1, Server = 2, Client = 3 };

/// A moment within a span.
struct SpanEvent {
    std::string name;
    TimePoint at;
};

/// A piece of work that has ended. Times are those of the server's clock; whoever sends them on
/// makes wall time of them.
struct Span {
    TraceContext context;  ///< its own: `span` is its id
    std::string parent{};  ///< id of the span that it is a part of; empty: it is the first
    std::string name;      ///< of bounded variety: no ids
    SpanKind kind = SpanKind::Internal;
    TimePoint start;
    TimePoint end;
    Attributes attributes{};
    std::vector<SpanEvent> events{};
    std::vector<TraceContext> links{};  ///< of other traces that it has to do with
    bool failed = false;
    std::string why{};  ///< of a failed one
};

}  // namespace hearth::metrics
