#include "controller/queue/CircuitBreaker.h"
#include "tests/support/Support.h"

using namespace hearth;
using namespace hearth::controller;
using namespace std::chrono_literals;

TEST_CASE("failures in a row wait longer each time, up to a minute", "[unit][controller]") {
    ManualClock clock;
    CircuitBreaker breaker(clock);
    std::chrono::nanoseconds before{0};
    for (int i = 0; i < 7; ++i) {
        breaker.failed("p", "why");
        const auto delay = breaker.state("p").retry_at - clock.now();
        CHECK(delay > before);
        before = delay;
    }
    for (int i = 0; i < 30; ++i) breaker.failed("p", "why");
    CHECK(breaker.state("p").retry_at - clock.now() == 60s);
    CHECK(breaker.state("p").reason == "why");
}

TEST_CASE("the third failure in a row degrades a pool and a success heals it",
          "[unit][controller]") {
    ManualClock clock;
    CircuitBreaker breaker(clock);
    breaker.failed("p", "x");
    breaker.failed("p", "x");
    CHECK_FALSE(breaker.state("p").degraded());
    breaker.failed("p", "x");
    CHECK(breaker.state("p").degraded());
    CHECK_FALSE(breaker.state("q").degraded());
    breaker.succeeded("p", 1s);
    CHECK_FALSE(breaker.state("p").degraded());
    CHECK(breaker.state("p").retry_at == TimePoint{});
    CHECK(breaker.state("p").reason.empty());
    breaker.failed("p", "x");
    breaker.forget("p");
    CHECK(breaker.state("p").failures == 0);
}

TEST_CASE("the expected time of a start follows measured starts", "[unit][controller]") {
    ManualClock clock;
    CircuitBreaker breaker(clock);
    for (int i = 0; i < 50; ++i) breaker.succeeded("p", 2s);
    CHECK(breaker.state("p").start_seconds == Approx(2).epsilon(0.01));
}

TEST_CASE("a pool without the layer that it needs is degraded at once, until there is one",
          "[unit][controller]") {
    ManualClock clock;
    CircuitBreaker breaker(clock);
    breaker.layer("p", "");
    CHECK_FALSE(breaker.state("p").degraded());
    breaker.layer("p", "no index");
    CHECK(breaker.state("p").degraded());
    CHECK(breaker.state("p").reason == "no index");
    breaker.layer("p", "");
    CHECK_FALSE(breaker.state("p").degraded());
    CHECK(breaker.state("p").reason.empty());
    breaker.failed("p", "x");
    breaker.layer("p", "");
    CHECK(breaker.state("p").reason == "x");
    breaker.layer("p", "no index");
    breaker.failed("p", "y");
    CHECK(breaker.state("p").reason == "no index");  // the layer's reason comes first
    breaker.layer("p", "");
    CHECK(breaker.state("p").reason == "y");
}
