#include <cmath>
#include <random>

#include "controller/forecast/Demand.h"
#include "controller/forecast/Forecast.h"
#include "tests/support/Support.h"

using namespace hearth;
using namespace hearth::controller;
using namespace std::chrono_literals;

namespace {

constexpr Objective kObjective{0.001, 16, 200};

/// A forecast under a clock that the test moves.
struct Watched {
    Forecast forecast;
    Moment at{TimePoint(1h), WallTime(1'767'571'200s)};
    std::mt19937_64 engine{7};

    Watched() {
        for (int i = 0; i < 20; ++i) forecast.started(2s);
    }
    Outlook pass(double seconds) {
        const std::chrono::nanoseconds by(static_cast<std::int64_t>(seconds * 1e9));
        at.now += by;
        at.wall += std::chrono::duration_cast<WallTime::duration>(by);
        return forecast.look(at, kObjective);
    }
    /// Feeds a Poisson process. One claim in 1000 misses, which is just what the objective allows.
    Outlook poisson(double per_second, double seconds) {
        std::exponential_distribution<double> gap(per_second);
        Outlook last;
        for (double wait = gap(engine), left = seconds; left > 0; wait = gap(engine)) {
            last = pass(std::min(wait, left));
            left -= wait;
            if (left > 0) forecast.arrived(at, 1, ++claims % 1000 == 0 ? 1 : 0);
        }
        return last;
    }
    int claims = 0;
};

std::size_t poissonQuantile(double mean, double more) {
    double term = std::exp(-mean);
    double sum = term;
    std::size_t n = 0;
    while (1 - sum > more) {
        ++n;
        term *= mean / static_cast<double>(n);
        sum += term;
    }
    return n;
}

}  // namespace

TEST_CASE("a target for a steady Poisson process is near its quantile", "[unit][forecast]") {
    Watched pool;
    const Outlook outlook = pool.poisson(2, 4 * 3600.0);
    CHECK(outlook.per_second == Approx(2).epsilon(0.15));
    CHECK(outlook.lead_seconds == Approx(2));
    const std::size_t exact = poissonQuantile(4, 0.001);
    CHECK(outlook.target + 3 >= exact);
    CHECK(outlook.target <= exact + 3);
}

TEST_CASE("a target rises at once, falls slowly, and is nothing after long silence",
          "[unit][forecast]") {
    Watched pool;
    const std::size_t calm = pool.poisson(0.2, 3600).target;
    const std::size_t busy = pool.poisson(5, 60).target;
    CHECK(busy > calm + 4);
    CHECK(pool.pass(1).target == busy);  // the target holds
    const std::size_t soon = pool.pass(10).target;
    CHECK(soon < busy);
    CHECK(soon + busy / 8 + 1 >= busy);
    for (int i = 0; i < 3000; ++i) pool.pass(60);
    CHECK(pool.pass(60).target == 0);
}

TEST_CASE("the busy hour of past days is expected before its first claim", "[unit][forecast]") {
    Watched days;
    Outlook before;
    for (int day = 0; day < 4; ++day) {
        for (int step = 0; step < 8 * 360; ++step) days.pass(10);
        days.poisson(1, 4 * 3600.0);
        for (int step = 0; step < 12 * 360; ++step) before = days.pass(10);
    }
    for (int step = 0; step < 8 * 360; ++step) before = days.pass(10);
    Watched silent;
    const Outlook unknown = silent.pass(10);
    CHECK(before.per_second > unknown.per_second);
    CHECK(before.target >= 1);
}

TEST_CASE("clocks that jump, and claims without starts, harm no forecast", "[unit][forecast]") {
    Watched pool;
    const std::size_t usual = pool.poisson(1, 1800).target;
    pool.at.wall -= 48h;
    CHECK(pool.pass(1).target <= usual + 1);
    pool.at.wall += 24'000h;
    pool.at.now -= 10s;
    CHECK(pool.pass(1).target <= usual + 1);
    CHECK(pool.pass(400'000).target <= usual);
    Forecast unborn;
    Moment at{TimePoint(1h), WallTime(1h)};
    unborn.arrived(at, 5, 5);
    CHECK(unborn.look(at, kObjective).target == 0);  // no start time is known
    CHECK(unborn.look(at, kObjective).missed == 1);
}

TEST_CASE("few slots for starts need more sandboxes, and a queue that grows needs all",
          "[unit][forecast]") {
    const std::size_t many = Demand{3, 3, 100, 1}.sizeFor(0.001, 50);
    CHECK(many == poissonQuantile(3, 0.001));
    CHECK(Demand{3, 3, 4, 1}.sizeFor(0.001, 50) > many);
    CHECK(Demand{3, 9, 100, 1}.sizeFor(0.001, 50) > many);
    CHECK(Demand{3, 3, 1, 1}.sizeFor(0.001, 50) == 50);
    CHECK(Demand{0, 0, 1, 1}.sizeFor(0.001, 50) == 0);
}
