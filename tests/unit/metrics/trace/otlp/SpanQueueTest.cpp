#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "metrics/trace/otlp/SpanQueue.h"

namespace hearth::metrics {
namespace {

Span spanOf(const std::string& tenant, std::string name, SpanKind kind = SpanKind::Internal) {
    Span span{.context = {}, .name = std::move(name), .kind = kind, .start = {}, .end = {}};
    span.attributes.push_back({"hearth.pool", std::string("p")});
    span.attributes.push_back({kTenantAttribute, tenant});
    return span;
}

std::vector<std::string> namesIn(SpanQueue& queue) {
    std::vector<std::string> names;
    for (const Span& each : queue.takeAll()) names.push_back(each.name);
    return names;
}

}  // namespace

TEST_CASE("a tenant's flood of spans drops none of another tenant's", "[unit][metrics]") {
    SpanQueue queue(4);
    std::size_t lost = queue.push(spanOf("quiet", "claim"));
    for (int i = 0; i < 100; ++i) lost += queue.push(spanOf("loud", std::to_string(i)));
    CHECK(lost == 97);
    CHECK(queue.push(spanOf("quiet", "execution")) == 1);  // finds a place in a full queue
    CHECK(queue.size() == 4);
    CHECK(namesIn(queue) == std::vector<std::string>{"claim", "98", "99", "execution"});
    CHECK(queue.size() == 0);
}

TEST_CASE("spans without a tenant drop neither a tenant's spans nor the server's",
          "[unit][metrics]") {
    SpanQueue queue(5);
    queue.push(spanOf("server", "claim"));
    queue.push({.context = {}, .name = "reconcile pool", .start = {}, .end = {}});
    for (int i = 0; i < 100; ++i) queue.push(spanOf("", std::to_string(i), SpanKind::Server));
    CHECK(namesIn(queue) == std::vector<std::string>{"claim", "reconcile pool", "97", "98", "99"});
}

}  // namespace hearth::metrics
