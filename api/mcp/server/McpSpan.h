#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "api/mcp/server/McpServer.h"
#include "metrics/trace/Tracer.h"

namespace hearth::mcp {

/// The caller with the request's own span as its place in the trace: within the span that
/// `_meta.traceparent` names, else within the HTTP request.
Caller withSpan(const Caller& caller, const Message& message, const metrics::Tracer& tracer);

/// How a request ended.
struct CallEnd {
    std::string_view method;
    std::string_view tool;     ///< empty except of tools/call
    std::string_view outcome;  ///< as the metrics have it: ok, error, tool_error, input_required
    std::optional<int> code;   ///< of a JSON-RPC error
};

/// Its span, after OpenTelemetry's conventions for MCP (in development when this was written, so
/// the names may change: they all stand in this function). Neither arguments nor results.
metrics::Span callSpan(const Caller& caller, const Json& id, const CallEnd& end, TimePoint now);

}  // namespace hearth::mcp
