#include "api/mcp/server/McpSpan.h"

#include <nlohmann/json.hpp>

namespace hearth::mcp {

Caller withSpan(const Caller& caller, const Message& message, const metrics::Tracer& tracer) {
    Caller own = caller;
    TraceContext& trace = own.context.who.trace;
    own.parent_span = trace.span_id;
    const auto meta =
        message.params.is_object() ? message.params.find("_meta") : message.params.end();
    std::optional<TraceContext> told;
    if (meta != message.params.end() && meta->is_object()) {
        told = parseTraceContext(textAt(*meta, "traceparent"), textAt(*meta, "tracestate"));
    }
    if (told && told->trace_id != trace.trace_id) own.http_span = trace;
    if (told) own.parent_span = told->span_id;
    trace = told ? tracer.begin(told) : tracer.within(trace);
    own.trace_id = trace.trace_id;
    return own;
}

metrics::Span callSpan(const Caller& caller, const Json& id, const CallEnd& end, TimePoint now) {
    std::string name(end.method);
    if (!end.tool.empty()) name.append(" ").append(end.tool);
    const bool well = end.outcome == "ok" || end.outcome == "input_required";
    metrics::Span span{.context = caller.context.who.trace,
                       .parent = caller.parent_span,
                       .name = std::move(name),
                       .kind = metrics::SpanKind::Server,
                       .start = caller.context.started_at,
                       .end = now,
                       .attributes = {{"mcp.method.name", std::string(end.method)},
                                      {"mcp.protocol.version", caller.version},
                                      {"network.transport", "tcp"},
                                      {metrics::kTenantAttribute, caller.context.who.tenant}},
                       .failed = !well};
    const auto add = [&](const char* key, std::string value) {
        span.attributes.push_back({key, std::move(value)});
    };
    if (!end.tool.empty()) {
        add("gen_ai.tool.name", std::string(end.tool));
        add("gen_ai.operation.name", "execute_tool");
    }
    if (!id.is_null()) {
        add("jsonrpc.request.id", id.is_string() ? id.get<std::string>() : dumpJson(id));
    }
    if (end.code) add("rpc.response.status_code", std::to_string(*end.code));
    if (!well) add("error.type", end.code ? std::to_string(*end.code) : std::string(end.outcome));
    if (caller.http_span) span.links.push_back(*caller.http_span);
    return span;
}

}  // namespace hearth::mcp
