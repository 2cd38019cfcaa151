#include <algorithm>

#include "controller/simulation/TraceShape.h"
#include "tests/support/Support.h"

using namespace hearth::controller;

TEST_CASE("a shape and a seed make one trace, ascending, as long as asked", "[unit][simulation]") {
    for (const TraceShape shape : {TraceShape::Diurnal, TraceShape::Bursty, TraceShape::Rare}) {
        const Trace first = makeTrace(shape, 7, 5000);
        CHECK(first.at.size() == 5000);
        CHECK(std::is_sorted(first.at.begin(), first.at.end()));
        CHECK(first.at == makeTrace(shape, 7, 5000).at);
        CHECK(first.at != makeTrace(shape, 8, 5000).at);
        CHECK(usualClaims(shape) >= 100'000);
    }
}

TEST_CASE("a working day is busy at ten and quiet at three", "[unit][simulation]") {
    const Trace trace = makeTrace(TraceShape::Diurnal, 1, 60'000);
    const auto between = [&](double from, double to) {
        return std::count_if(trace.at.begin(), trace.at.end(),
                             [&](double at) { return at >= from * 3600 && at < to * 3600; });
    };
    CHECK(between(10, 11) > 15 * between(2, 3));
}
