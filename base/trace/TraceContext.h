#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hearth {

/// A place in a trace, as W3C Trace Context (level 1) carries it between processes.
struct TraceContext {
    std::string trace_id;  ///< 32 lower-case hex digits; empty: there is no trace
    std::string span_id;   ///< 16 such digits: the work that the following work is a part of
    bool sampled = false;  ///< the originator records the trace
    std::string state;     ///< `tracestate` as it came; passed on unchanged

    bool valid() const { return !trace_id.empty(); }
};

/// Reads the headers `traceparent` and `tracestate`; nullopt if the first is not valid. The second
/// counts only beside the first. A state that exceeds 512 bytes or is not printable ASCII is
/// dropped.
std::optional<TraceContext> parseTraceContext(std::string_view parent, std::string_view state);
/// The header `traceparent`, version 00.
std::string traceParent(const TraceContext& context);

/// Random, and never all zeroes. Cheap: a thread gets many from the kernel at once.
std::string newTraceId();
std::string newSpanId();

}  // namespace hearth
