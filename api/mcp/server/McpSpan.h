#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "api/mcp/server/McpServer.h"
#include "metrics/trace/Tracer.h"

namespace hearth::mcp {

/// Returns the caller with the request's own span as its place in the trace. The parent is the span
/// that `_meta.traceparent` names, else the HTTP request.
Caller withSpan(const Caller& caller, const Message& message, const metrics::Tracer& tracer);

/// How a request ended.
struct CallEnd {
    std::string_view method;
    std::string_view tool;     ///< empty except for tools/call
    std::string_view outcome;  ///< as in the metrics: ok, error, tool_error, input_required
    std::optional<int> code;   ///< the code of a JSON-RPC error
};

/// Returns the span of a request, named by OpenTelemetry's conventions for MCP. They are still in
/// development, so all names are in this function. Holds neither arguments nor results.
metrics::Span callSpan(const Caller& caller, const Json& id, const CallEnd& end, TimePoint now);

}  // namespace hearth::mcp
