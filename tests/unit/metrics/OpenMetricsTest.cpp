#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <catch2/catch.hpp>
#include <limits>

#include "metrics/Metrics.h"
#include "metrics/OpenMetrics.h"

namespace hearth::metrics {

TEST_CASE("OpenMetrics: families, escapes, numbers and the end are as its specification has them") {
    prometheus::Registry registry;
    prometheus::BuildCounter()
        .Name("hits_total")
        .Help("Hits \"of\"\na \\")
        .Register(registry)
        .Add({{"who", "a\"b\\c\nd"}});
    prometheus::BuildGauge().Name("heat").Help("H").Register(registry).Add({}).Set(
        -std::numeric_limits<double>::infinity());
    CHECK(renderOpenMetrics(registry.Collect(), Exemplars()) ==
          "# TYPE hits counter\n"
          "# HELP hits Hits \\\"of\\\"\\na \\\\\n"
          "hits_total{who=\"a\\\"b\\\\c\\nd\"} 0.0\n"
          "# TYPE heat gauge\n"
          "# HELP heat H\n"
          "heat -Inf\n"
          "# EOF\n");
}

TEST_CASE("an exemplar stands at the bucket of its value, and the last one counts") {
    prometheus::Registry registry;
    const prometheus::Histogram::BucketBoundaries buckets{0.5, 2};
    const prometheus::Labels labels{{"pool", "p"}};
    auto& histogram = prometheus::BuildHistogram()
                          .Name("wait_seconds")
                          .Help("W")
                          .Register(registry)
                          .Add(labels, buckets);
    Exemplars exemplars;
    const auto see = [&](double value, const std::string& trace, bool sampled = true) {
        histogram.Observe(value);
        exemplars.note("wait_seconds", labels, buckets, value, {trace, "s", sampled, ""});
    };
    see(1, "first");
    see(2, "second");
    see(0.1, "unseen", false);
    see(7, "long");
    const std::string text = renderOpenMetrics(registry.Collect(), exemplars);
    CHECK(text.find("wait_seconds_bucket{pool=\"p\",le=\"0.5\"} 1\n") != std::string::npos);
    CHECK(text.find("wait_seconds_bucket{pool=\"p\",le=\"2.0\"} 3 # "
                    "{trace_id=\"second\",span_id=\"s\"} 2.0 ") != std::string::npos);
    CHECK(text.find("wait_seconds_bucket{pool=\"p\",le=\"+Inf\"} 4 # "
                    "{trace_id=\"long\",span_id=\"s\"} 7.0 ") != std::string::npos);
    CHECK(text.find("wait_seconds_count{pool=\"p\"} 4\nwait_seconds_sum{pool=\"p\"} 10.1\n") !=
          std::string::npos);
    exemplars.forgetPool("p");
    CHECK(renderOpenMetrics(registry.Collect(), exemplars).find("trace_id") == std::string::npos);
}

TEST_CASE("both formats tell the same series") {
    Metrics metrics;
    metrics.bornPool("p");
    metrics.claim("p", "warm", 0.001,
                  {"4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7", true, ""});
    const auto samples = [](const std::string& text) {
        std::size_t count = 0;
        std::size_t at = 0;
        while (at < text.size()) {
            count += text[at] != '#' ? 1 : 0;
            at = text.find('\n', at) + 1;
        }
        return count;
    };
    CHECK(samples(metrics.render()) == samples(metrics.renderOpen()));
    CHECK(metrics.render().find("trace_id") == std::string::npos);
    CHECK(metrics.renderOpen().find("trace_id") != std::string::npos);
}

TEST_CASE("a scraper gets OpenMetrics where it asks for it") {
    CHECK(asksForOpenMetrics("application/openmetrics-text;version=1.0.0,text/plain;q=0.5"));
    CHECK_FALSE(asksForOpenMetrics("text/plain;version=0.0.4"));
    CHECK_FALSE(asksForOpenMetrics(""));
}

}  // namespace hearth::metrics
