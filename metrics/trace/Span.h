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

/// A name from the OpenTelemetry semantic conventions, or Hearth's own ("hearth.…"), and its value.
struct Attribute {
    std::string_view key;  ///< a literal: spans are made often, and sent much later
    std::variant<std::string, std::int64_t, double, bool> value;
};
using Attributes = std::vector<Attribute>;
/// The tenant that the work was done for. SpanQueue divides its places by it.
inline constexpr std::string_view kTenantAttribute = "hearth.tenant";

/// The names and texts that all spans of a server share.
using Resource = std::vector<std::pair<std::string, std::string>>;

/// The numbers are OTLP's.
enum class SpanKind : std::uint8_t { Internal = 1, Server = 2, Client = 3 };

/// A moment within a span.
struct SpanEvent {
    std::string name;
    TimePoint at;
};

/// A piece of work that has ended. Times are those of the server's clock; the exporter converts
/// them to wall time.
struct Span {
    TraceContext context;  ///< the span's own context, with its id
    std::string parent{};  ///< id of the enclosing span; empty: it is the first
    std::string name;      ///< from a bounded set: no ids
    SpanKind kind = SpanKind::Internal;
    TimePoint start;
    TimePoint end;
    Attributes attributes{};
    std::vector<SpanEvent> events{};
    std::vector<TraceContext> links{};  ///< to other traces that it is related to
    bool failed = false;
    std::string why{};  ///< only if it failed
};

}  // namespace hearth::metrics
