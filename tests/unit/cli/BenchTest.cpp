#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "api/cli/BenchReport.h"
#include "api/cli/Statistics.h"
#include "api/cli/Tar.h"
#include "base/Error.h"

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
    CHECK(report.table().find("20.0x") != std::string::npos);
    CHECK(document["dockerContainer"] == "own");
    CHECK(report.table().find("docker exec in another container") != std::string::npos);
    report.same_container = true;
    CHECK(report.document()["dockerContainer"] == "same");
    CHECK(report.table().find("the workspace's own container") != std::string::npos);
}

TEST_CASE("times of a busy machine are marked", "[unit][cli]") {
    BenchReport report;
    report.foreign_share = 0.3;
    CHECK(report.document()["timesTrustworthy"] == false);
    CHECK(report.table().find("do not trust") != std::string::npos);
    report.foreign_share = 0.1;
    CHECK(report.document()["timesTrustworthy"] == true);
}

TEST_CASE("a file comes out of its archive as it went in", "[unit][cli]") {
    for (const std::size_t size : {0U, 1U, 511U, 512U, 513U, 100000U}) {
        const std::string bytes(size, 'x');
        const std::string archive = tarOf("name", bytes);
        CHECK(archive.size() % 512 == 0);
        CHECK(firstFileOfTar(archive) == bytes);
    }
    CHECK_THROWS_AS(firstFileOfTar(""), Error);
    CHECK_THROWS_AS(firstFileOfTar(tarOf("name", std::string(2000, 'x')).substr(0, 1024)), Error);
}
