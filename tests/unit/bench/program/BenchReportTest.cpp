#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "base/Error.h"
#include "tests/bench/program/BenchChart.h"
#include "tests/bench/program/BenchReport.h"
#include "tests/bench/program/measure/Statistics.h"

using namespace hearth;
using namespace hearth::cli;

TEST_CASE("percentiles interpolate between the nearest values", "[unit][cli]") {
    CHECK(percentile({}, 0.5) == 0);
    CHECK(percentile({7}, 0.99) == 7);
    CHECK(percentile({1, 2, 3, 4}, 0.5) == Approx(2.5));
    CHECK(percentile({1, 2, 3, 4, 5}, 0.5) == 3);
    CHECK(percentile({0, 10}, 0.9) == Approx(9));
    CHECK(percentile({1, 2}, 1.0) == 2);
    CHECK(percentile({1, 2}, 7.0) == 2);
}

TEST_CASE("a summary does not need sorted values", "[unit][cli]") {
    std::vector<double> values;
    for (int i = 100; i >= 0; --i) values.push_back(i);
    const Summary s = summarize(values);
    CHECK(s.samples == 101);
    CHECK(s.least == 0);
    CHECK(s.most == 100);
    CHECK(s.mean == Approx(50));
    CHECK(s.p50 == 50);
    CHECK(s.p90 == 90);
    CHECK(s.p99 == 99);
    CHECK(summarize({}).samples == 0);
}

TEST_CASE("the ratio is Docker's median over Hearth's", "[unit][cli]") {
    BenchReport report;
    report.docker_version = "1";
    for (const double ms : {1.0, 2.0, 3.0}) report.add(Side::Hearth, "shell", ms);
    for (const double ms : {30.0, 40.0, 50.0}) report.add(Side::Docker, "shell", ms);
    report.add(Side::Hearth, "claim", 1.0);
    const Json document = report.document();
    CHECK(document["operations"][0]["name"] == "claim");
    CHECK_FALSE(document["operations"][0].contains("docker"));
    CHECK(document["operations"][1]["ratioP50"] == 20.0);
    CHECK(document["operations"][1]["docker"]["p50Ms"] == 40.0);
    CHECK(benchTable(report).find("20.0x") != std::string::npos);
    CHECK(document["dockerContainer"] == "own");
    CHECK(benchTable(report).find("docker exec in another container") != std::string::npos);
    report.same_container = true;
    CHECK(report.document()["dockerContainer"] == "same");
    CHECK(benchTable(report).find("the workspace's own container") != std::string::npos);
}

TEST_CASE("the report of a busy machine shows only ratios", "[unit][cli]") {
    BenchReport report;
    report.docker_version = "1";
    report.add(Side::Hearth, "shell", 2.0);
    report.add(Side::Docker, "shell", 40.0);
    report.throughput.push_back({"claim", 4, 10, 2.0, summarize({1.0}), {{"warm", 10}}});
    report.foreign_before = 0.1;
    CHECK(report.document()["operations"][0]["hearth"]["p50Ms"] == 2.0);
    CHECK(report.document()["throughput"]["rows"][0]["perSecond"] == 5.0);
    CHECK(report.document()["timesTrustworthy"] == true);

    report.foreign_after = 0.3;
    const Json busy = report.document();
    CHECK(busy["timesTrustworthy"] == false);
    CHECK(busy["timesTold"] == false);
    CHECK(busy["operations"][0]["hearth"] == Json({{"samples", 1}}));
    CHECK(busy["operations"][0]["ratioP50"] == 20.0);
    CHECK_FALSE(busy["throughput"]["rows"][0].contains("perSecond"));
    CHECK(benchTable(report).find("times are not told") != std::string::npos);
    CHECK(benchTable(report).find("2.000") == std::string::npos);
    CHECK(benchTable(report).find("20.0x") != std::string::npos);

    report.allow_busy = true;
    CHECK(report.document()["operations"][0]["hearth"]["p50Ms"] == 2.0);
    CHECK(report.document()["timesTrustworthy"] == false);
    CHECK(benchTable(report).find("do not trust the times") != std::string::npos);
}

TEST_CASE("99th percentiles are compared from 300 samples on", "[unit][cli]") {
    BenchReport::Row row{"shell", std::vector<double>(300, 2.0), std::vector<double>(299, 40.0)};
    CHECK_FALSE(ratioP99(row));
    row.docker.push_back(40.0);
    CHECK(ratioP99(row) == 20.0);
    CHECK_FALSE(ratioP50(BenchReport::Row{"shell", {}, {1.0}}));
}

TEST_CASE("a pool that was not measured says why", "[unit][cli]") {
    BenchReport report;
    PoolSizeRow small;
    small.size = 10;
    small.refill_seconds = 2;
    small.refilled = 10;
    small.memory.pss = 3U << 20U;
    PoolSizeRow large;
    large.size = 1000;
    large.refused = "9 GiB are needed";
    report.pools = {small, large};
    const Json pools = report.document()["pools"];
    CHECK(pools[0]["perWarmSandbox"]["pssBytes"] == 3U << 20U);
    CHECK(pools[0]["perWarmSandbox"]["cgroupBytes"].is_null());
    CHECK(pools[1] == Json({{"size", 1000}, {"refused", "9 GiB are needed"}}));
    const std::string table = benchTable(report);
    CHECK(table.find("5.0") != std::string::npos);
    CHECK(table.find("pool of 1000 not measured: 9 GiB are needed") != std::string::npos);
}

namespace {

/// Checks that elements are closed in order and that no text contains a bare '<' or '&'.
bool wellFormed(const std::string& xml) {
    std::vector<std::string> open;
    for (std::size_t at = 0; at < xml.size(); ++at) {
        if (xml[at] == '&') {
            const std::size_t end = xml.find(';', at);
            if (end == std::string::npos || end - at > 6) return false;
        }
        if (xml[at] != '<') continue;
        const std::size_t end = xml.find('>', at);
        if (end == std::string::npos) return false;
        const std::string tag = xml.substr(at + 1, end - at - 1);
        if (tag.find('<') != std::string::npos) return false;
        if (tag.starts_with("/")) {
            if (open.empty() || open.back() != tag.substr(1)) return false;
            open.pop_back();
        } else if (!tag.ends_with("/")) {
            open.push_back(tag.substr(0, tag.find(' ')));
        }
        at = end;
    }
    return open.empty();
}

}  // namespace

TEST_CASE("the chart is well-formed and shows each operation with its ratio", "[unit][cli]") {
    BenchReport report;
    report.started_at = "2026-11-21T00:00:00Z";
    report.server_version = "<1> & \"2\"";
    report.docker_version = "28\x01";
    report.add(Side::Hearth, "shell", 2.0);
    report.add(Side::Docker, "shell", 40.0);
    report.add(Side::Hearth, "claim", 0.1);
    report.add(Side::Docker, "claim", 250.0);
    report.add(Side::Hearth, "no docker", 1e-9);
    const std::string svg = benchChart(report);
    CHECK(wellFormed(svg));
    CHECK(svg.starts_with("<svg "));
    CHECK(svg.find("20×") != std::string::npos);
    CHECK(svg.find("2500×") != std::string::npos);
    CHECK(svg.find("no docker") != std::string::npos);
    CHECK(svg.find("&lt;1&gt; &amp; &quot;2&quot;") != std::string::npos);
    CHECK(svg.find('\x01') == std::string::npos);
    CHECK(svg.find("nan") == std::string::npos);
    CHECK_THROWS_AS(benchChart(BenchReport()), Error);
}
