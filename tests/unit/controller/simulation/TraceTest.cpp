#include "controller/forecast/TraceRecorder.h"
#include "controller/simulation/Trace.h"
#include "tests/support/Support.h"

using namespace hearth;
using namespace hearth::controller;

namespace {

std::string refusalOf(const std::string& text) {
    const Error error = hearth::test::errorOf([&] { readTrace(text, "day.trace"); });
    CHECK(error.code() == ErrorCode::InvalidArgument);
    CHECK(error.hint().find("seconds since the start") != std::string::npos);
    return error.what();
}

}  // namespace

TEST_CASE("a trace is a line for each arrival, in seconds or in dates", "[unit][simulation]") {
    const Trace plain = readTrace("# recorded\n0\n1.5\r\n\n1.5\n20", "day.trace");
    CHECK(plain.at == std::vector<double>{0, 1.5, 1.5, 20});
    const Trace dated = readTrace("2026-01-05T08:00:00Z\n2026-01-05T08:00:01.250Z\n", "day.trace");
    CHECK(dated.at == std::vector<double>{0, 1.25});
    CHECK(formatRfc3339(dated.start) == "2026-01-05T08:00:00.000Z");
    CHECK(readTrace(traceLine(dated.start), "x").start == dated.start);
}

TEST_CASE("a trace with holes is refused with file, line, value and what is allowed",
          "[unit][simulation]") {
    CHECK(refusalOf("1\n0.5\n") == "day.trace line 2: \"0.5\" is before the line above it");
    CHECK(refusalOf("1\nsoon\n") == "day.trace line 2: \"soon\" is no time");
    CHECK(refusalOf("1\nnan\n") == "day.trace line 2: \"nan\" is no time");
    CHECK(refusalOf("-1\n") == "day.trace line 1: \"-1\" is negative");
    CHECK(refusalOf("1 2\n") == "day.trace line 1: \"1 2\" is no time");
    CHECK_FALSE(refusalOf("2500-01-05T08:00:00Z\n").empty());
    CHECK(refusalOf("1\n2026-01-05T08:00:00Z\n") ==
          "day.trace line 2: \"2026-01-05T08:00:00Z\" mixes seconds and dates");
    CHECK(refusalOf("1e300\n") == "day.trace line 1: \"1e300\" is no time");
    CHECK(refusalOf("99999999999\n").find("more than ten years") != std::string::npos);
    CHECK(refusalOf("") == "day.trace has no arrival");
    CHECK(refusalOf("# nothing\n\n") == "day.trace has no arrival");
}
