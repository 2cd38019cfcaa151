#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hearth {

/// A place in a trace, as W3C Trace Context (level 1) carries it between processes.
struct TraceContext {
    std::string trace_id;  ///< 32 lower-case hex digits; empty: there is no trace
    std::string span_id;   ///< 16 of them: the work that whatever follows is a part of
    bool sampled = false;  ///< it is recorded by whoever began it
    std::string state;     ///< `tracestate` as it came; passed on unread

    bool valid() const { return !trace_id.empty(); }
};

/// Reads the headers `traceparent` and `tracestate`; nullopt where the first is not one, and the
/// second counts only beside it. A state of more than 512 bytes or of other than printable ASCII is
/// dropped.
std::optional<TraceContext> parseTraceContext(std::string_view parent, std::string_view state);
/// The header `traceparent`, version 00.
std::string traceParent(const TraceContext& context);

/// Random, and never all zeroes. Cheap: a thread draws many from the kernel at once.
std::string newTraceId();
std::string newSpanId();

}  // namespace hearth
