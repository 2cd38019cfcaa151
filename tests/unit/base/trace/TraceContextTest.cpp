#include <catch2/catch.hpp>
#include <set>

#include "base/trace/TraceContext.h"

namespace hearth {
namespace {

const std::string kTrace = "4bf92f3577b34da6a3ce929d0e0e4736";
const std::string kSpan = "00f067aa0ba902b7";
const std::string kParent = "00-" + kTrace + "-" + kSpan + "-01";

}  // namespace

TEST_CASE("a traceparent is read and written as W3C has it") {
    const auto context = parseTraceContext(kParent, "vendor=1,other=2");
    REQUIRE(context);
    CHECK(context->trace_id == kTrace);
    CHECK(context->span_id == kSpan);
    CHECK(context->sampled);
    CHECK(context->state == "vendor=1,other=2");
    CHECK(traceParent(*context) == kParent);
    CHECK_FALSE(parseTraceContext("00-" + kTrace + "-" + kSpan + "-00", "")->sampled);
    CHECK(parseTraceContext("00-" + kTrace + "-" + kSpan + "-03", "")->sampled);
    CHECK_FALSE(parseTraceContext("00-" + kTrace + "-" + kSpan + "-fe", "")->sampled);
}

TEST_CASE("a later version of traceparent is read up to the known fields") {
    CHECK(parseTraceContext("cc-" + kTrace + "-" + kSpan + "-01", ""));
    CHECK(parseTraceContext("cc-" + kTrace + "-" + kSpan + "-01-what-comes", ""));
    CHECK_FALSE(parseTraceContext("cc-" + kTrace + "-" + kSpan + "-01.", ""));
    CHECK_FALSE(parseTraceContext("00-" + kTrace + "-" + kSpan + "-01-what-comes", ""));
    CHECK_FALSE(parseTraceContext("ff-" + kTrace + "-" + kSpan + "-01", ""));
}

TEST_CASE("an invalid traceparent is ignored") {
    const std::string zeroes(32, '0');
    for (const std::string& text :
         {std::string(), std::string("00"), kParent.substr(1), kParent + " ",
          "00-" + zeroes + "-" + kSpan + "-01", "00-" + kTrace + "-" + zeroes.substr(16) + "-01",
          "00-" + std::string("4BF92F3577B34DA6A3CE929D0E0E4736") + "-" + kSpan + "-01",
          "00-" + kTrace + "-" + kSpan + "-0g", "00_" + kTrace + "-" + kSpan + "-01",
          "0x-" + kTrace + "-" + kSpan + "-01"}) {
        CAPTURE(text);
        CHECK_FALSE(parseTraceContext(text, ""));
    }
}

TEST_CASE("a tracestate that is too long or not printable is dropped, and the trace goes on") {
    CHECK(parseTraceContext(kParent, std::string(512, 'a'))->state.size() == 512);
    CHECK(parseTraceContext(kParent, std::string(513, 'a'))->state.empty());
    CHECK(parseTraceContext(kParent, "a=\r\nX: y")->state.empty());
}

TEST_CASE("new ids are hexadecimal and no two alike") {
    std::set<std::string> seen;
    for (int i = 0; i < 1'000; ++i) {
        const TraceContext made{newTraceId(), newSpanId(), true, ""};
        CHECK(parseTraceContext(traceParent(made), ""));
        seen.insert(made.trace_id);
        seen.insert(made.span_id);
    }
    CHECK(seen.size() == 2'000);
}

}  // namespace hearth
