#include <catch2/catch.hpp>

#include "base/Error.h"
#include "metrics/trace/Tracer.h"

namespace hearth::metrics {
namespace {

struct Kept final : SpanSink {
    void take(Span span) override { spans.push_back(std::move(span)); }
    std::vector<Span> spans;
};

const TraceContext kSampled{"4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7", true, "a=1"};
const TraceContext kUnsampled{"4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7", false, ""};

}  // namespace

TEST_CASE("a span is in its caller's trace, with an id of its own") {
    Kept kept;
    const Tracer tracer(Sampler::of("parentbased_always_on", ""), kept);
    const TraceContext first = tracer.begin(kSampled);
    CHECK(first.trace_id == kSampled.trace_id);
    CHECK(first.span_id != kSampled.span_id);
    CHECK(first.state == "a=1");
    const TraceContext inner = tracer.within(first);
    CHECK(inner.trace_id == first.trace_id);
    CHECK(inner.span_id != first.span_id);
    CHECK(tracer.aside(first).trace_id != first.trace_id);
    CHECK(tracer.aside(first).sampled);
    tracer.end({.context = inner, .name = "n", .start = {}, .end = {}});
    tracer.end({.context = tracer.begin(kUnsampled), .name = "unseen", .start = {}, .end = {}});
    REQUIRE(kept.spans.size() == 1);
    CHECK(kept.spans[0].name == "n");
}

TEST_CASE("without an exporter no span is recorded, and a caller's decision goes on as it came") {
    const Tracer tracer;
    CHECK(tracer.begin(kSampled).sampled);
    CHECK_FALSE(tracer.begin(kUnsampled).sampled);
    CHECK_FALSE(tracer.begin(std::nullopt).sampled);
    CHECK_FALSE(tracer.begin(std::nullopt).trace_id.empty());
    CHECK_FALSE(tracer.records(tracer.begin(kSampled)));
}

TEST_CASE("samplers behave as their names in OpenTelemetry say") {
    const std::string low = "4bf92f3577b34da6a300000000000001";
    const std::string high = "4bf92f3577b34da6a3ffffffffffffff";
    struct Row {
        const char* name;
        const char* argument;
        bool root_low, root_high, of_sampled, of_unsampled;
    };
    for (const Row& row : {Row{"always_on", "", true, true, true, true},
                           Row{"always_off", "", false, false, false, false},
                           Row{"traceidratio", "0.5", true, false, true, true},
                           Row{"traceidratio", "0", false, false, false, false},
                           Row{"traceidratio", "", true, true, true, true},
                           Row{"parentbased_always_on", "", true, true, true, false},
                           Row{"parentbased_always_off", "", false, false, true, false},
                           Row{"parentbased_traceidratio", "0.25", true, false, true, false}}) {
        CAPTURE(row.name, row.argument);
        const Sampler sampler = Sampler::of(row.name, row.argument);
        CHECK(sampler.takes(std::nullopt, low) == row.root_low);
        CHECK(sampler.takes(std::nullopt, high) == row.root_high);
        CHECK(sampler.takes(kSampled, low) == row.of_sampled);
        CHECK(sampler.takes(kUnsampled, low) == row.of_unsampled);
    }
    CHECK_THROWS_AS(Sampler::of("often", ""), Error);
    for (const char* share : {"2", "-0.1", "half", "nan", "0.5x"}) {
        CAPTURE(share);
        CHECK_THROWS_AS(Sampler::of("traceidratio", share), Error);
    }
}

}  // namespace hearth::metrics
