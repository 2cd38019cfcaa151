#include "controller/simulation/Chart.h"
#include "controller/simulation/Comparison.h"
#include "controller/simulation/TraceShape.h"
#include "tests/support/Support.h"

using namespace hearth::controller;

namespace {

PoolSpec free(std::uint32_t slots) {
    PoolSpec spec;
    spec.warm_min = 0;
    spec.warm_max = 100;
    spec.parallel_creates = slots;
    return spec;
}

}  // namespace

TEST_CASE("a fixed pool misses claims that come faster than it is filled", "[unit][simulation]") {
    PoolSpec spec = free(1);
    spec.warm_min = 2;
    const StartModel second{1, 0, 1};
    const PolicyResult result =
        PoolModel(spec, second).replay({"t", traceEpoch(), {10, 10, 10, 20}});
    CHECK(result.claims == 4);
    CHECK(result.misses == 1);
    CHECK(result.waited_seconds == Approx(1));
    // Ready at 1 and 2 until 10; then from 12 and 13, the first until 20.
    CHECK(result.idle_seconds == Approx(9 + 8 + 8 + 7));
}

TEST_CASE("a simulated pool follows its schedules, also for claims that wait",
          "[unit][simulation]") {
    PoolSpec spec = free(16);
    spec.warm_max = 1;
    const StartModel second{1, 0, 1};
    const Trace three{"t", traceEpoch(), {10, 10, 10, 12.5}};
    // Claims are served one after the other. The third one waits until the trace ends.
    CHECK(PoolModel(spec, second).replay(three).waited_seconds == Approx(1 + 2 + 2.5));
    spec.schedules = {{"all day",
                       Cron("* * * * *"),
                       {},
                       std::chrono::minutes(2),
                       WarmChange{.min = 0, .max = 8},
                       false}};
    CHECK(PoolModel(spec, second).replay(three).waited_seconds == Approx(1 + 1 + 1));
}

TEST_CASE("the clairvoyant idles only where slots are too few", "[unit][simulation]") {
    const StartModel second{1, 0, 1};
    const Trace together{"t", traceEpoch(), {10, 10, 10}};
    CHECK(clairvoyant(free(3), second, together).idle_seconds == Approx(0));
    CHECK(clairvoyant(free(1), second, together).idle_seconds == Approx(1 + 2));
    CHECK(clairvoyant(free(1), second, together).misses == 0);
}

TEST_CASE("a comparison is the same each time, keeps its objective and is drawn",
          "[unit][simulation]") {
    const Trace trace = makeTrace(TraceShape::Diurnal, 3, 60'000);
    const Comparison once = compare(free(16), {}, trace);
    const Comparison again = compare(free(16), {}, trace);
    CHECK(once.predictive.misses == again.predictive.misses);
    CHECK(once.predictive.idle_seconds == again.predictive.idle_seconds);
    CHECK(once.predictive.missRate() < 0.0012);
    CHECK(once.best_static.misses <= once.predictive.misses);
    CHECK(once.ofStatic() < 0.75);  // for most of a day; a week is not tested here
    CHECK(chartOf({once}).find("Predictive") != std::string::npos);
}
