#include "metrics/trace/otlp/SpanQueue.h"

#include <string>
#include <utility>
#include <variant>

namespace hearth::metrics {
namespace {

std::string groupOfSpan(const Span& span) {
    for (const Attribute& each : span.attributes) {
        if (each.key != kTenantAttribute) continue;
        const auto* tenant = std::get_if<std::string>(&each.value);
        if (tenant != nullptr && !tenant->empty()) return "tenant=" + *tenant;
    }
    // Refused strangers choose which traces are recorded; they must not push out the server's work.
    return span.kind == SpanKind::Server ? "strangers" : "server";
}

}  // namespace

std::size_t SpanQueue::push(Span span) {
    const std::string group = groupOfSpan(span);
    return spans_.push(group, std::move(span));
}

}  // namespace hearth::metrics
