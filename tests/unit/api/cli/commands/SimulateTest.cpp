#include "tests/support/Support.h"
#include "tests/unit/api/cli/Call.h"

using namespace hearth;
using hearth::test::call;
using hearth::test::Outcome;

namespace {

Outcome simulate(std::vector<std::string> words) {
    words.insert(words.begin(), "simulate");
    return call(words);
}

}  // namespace

TEST_CASE("simulate compares three ways of sizing as a table, JSON and a chart", "[unit][cli]") {
    const test::TempDir dir;
    const Outcome table =
        simulate({"--shape", "bursty", "--claims", "3000", "--svg", dir.file("chart.svg")});
    CHECK(table.status == 0);
    for (const char* word : {"Static ", "Predictive", "Clairvoyant", "bursty 1", "MISS RATE"}) {
        CHECK(table.out.find(word) != std::string::npos);
    }
    CHECK(test::readText(dir.file("chart.svg")).starts_with("<svg"));
    CHECK(simulate({"--shape", "rare", "--claims", "50", "-o", "json"})
              .out.find("idleSandboxSeconds") != std::string::npos);
}

TEST_CASE("a trace with holes is a usage error that names file, line and value", "[unit][cli]") {
    const test::TempDir dir;
    test::writeText(dir.file("bad.trace"), "1\n0.5\n");
    const Outcome bad = simulate({"--trace", dir.file("bad.trace")});
    CHECK(bad.status == 2);
    CHECK(bad.err.find("bad.trace line 2: \"0.5\" is before the line above it") !=
          std::string::npos);
    CHECK(bad.err.find("seconds since the start") != std::string::npos);
    test::writeText(dir.file("empty.trace"), "");
    CHECK(simulate({"--trace", dir.file("empty.trace")}).status == 2);
    CHECK(simulate({}).status == 2);
    CHECK(simulate({"--shape", "square"}).status == 2);
}
