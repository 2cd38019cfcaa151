#include <nlohmann/json.hpp>

#include "base/Fields.h"
#include "base/Json.h"
#include "base/Version.h"
#include "metrics/trace/otlp/OtlpMessage.h"

namespace hearth::metrics {
namespace {

constexpr int kStatusError = 2;

std::string wallNanos(TimePoint at, std::chrono::nanoseconds to_wall) {
    return std::to_string((at.time_since_epoch() + to_wall).count());
}

Json attributesJson(const Attributes& all) {
    Json out = Json::array();
    for (const Attribute& each : all) {
        Json value;
        if (const auto* text = std::get_if<std::string>(&each.value)) {
            value["stringValue"] = sentText(*text);
        }
        if (const auto* truth = std::get_if<bool>(&each.value)) value["boolValue"] = *truth;
        if (const auto* number = std::get_if<double>(&each.value)) value["doubleValue"] = *number;
        if (const auto* whole = std::get_if<std::int64_t>(&each.value)) {
            value["intValue"] = std::to_string(*whole);
        }
        out.push_back({{"key", each.key}, {"value", std::move(value)}});
    }
    return out;
}

Json resourceJson(const Resource& all) {
    Json out = Json::array();
    for (const auto& [key, text] : all) {
        out.push_back({{"key", key}, {"value", {{"stringValue", sentText(text)}}}});
    }
    return out;
}

Json spanJson(const Span& span, std::chrono::nanoseconds to_wall) {
    Json out = {{"traceId", span.context.trace_id}, {"spanId", span.context.span_id}};
    if (!span.context.state.empty()) out["traceState"] = span.context.state;
    if (!span.parent.empty()) out["parentSpanId"] = span.parent;
    out["name"] = sentText(span.name);
    out["kind"] = static_cast<int>(span.kind);
    out["startTimeUnixNano"] = wallNanos(span.start, to_wall);
    out["endTimeUnixNano"] = wallNanos(span.end, to_wall);
    if (!span.attributes.empty()) out["attributes"] = attributesJson(span.attributes);
    for (const SpanEvent& each : span.events) {
        out["events"].push_back(
            {{"timeUnixNano", wallNanos(each.at, to_wall)}, {"name", each.name}});
    }
    for (const TraceContext& each : span.links) {
        Json link = {{"traceId", each.trace_id}, {"spanId", each.span_id}};
        if (!each.state.empty()) link["traceState"] = each.state;
        out["links"].push_back(std::move(link));
    }
    if (span.failed) {
        out["status"]["code"] = kStatusError;
        if (!span.why.empty()) out["status"]["message"] = sentText(span.why);
    }
    return out;
}

}  // namespace

std::string otlpJson(const SpanBatch& batch) {
    Json spans = Json::array();
    for (const Span& each : batch.spans) spans.push_back(spanJson(each, batch.to_wall));
    const Json scope = {{"scope", {{"name", "hearth"}, {"version", kHearthVersion}}},
                        {"spans", std::move(spans)}};
    const Json resource = {{"resource", {{"attributes", resourceJson(batch.resource)}}},
                           {"scopeSpans", Json::array({scope})}};
    return dumpJson({{"resourceSpans", Json::array({resource})}});
}

PartialSuccess partialSuccessOfJson(const std::string& answer) {
    try {
        const Json told = parseJson(answer);
        const auto partial = told.find("partialSuccess");
        if (partial == told.end() || !partial->is_object()) return {};
        PartialSuccess out;
        const auto count = partial->find("rejectedSpans");
        if (count != partial->end()) {  // 64-bit integers are texts, but both forms are read
            out.rejected = count->is_string() ? std::stoul(count->get<std::string>())
                                              : count->get<std::size_t>();
        }
        out.why = textAt(*partial, "errorMessage");
        return out;
    } catch (const std::exception&) {
        return {};
    }
}

}  // namespace hearth::metrics
