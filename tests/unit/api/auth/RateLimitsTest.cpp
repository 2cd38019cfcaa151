#include <catch2/catch.hpp>

#include "api/auth/RateLimits.h"
#include "base/Clock.h"

using namespace hearth;

TEST_CASE("a tenant may use its burst at once, then its rate, and a refusal has a retry time",
          "[unit][auth]") {
    ManualClock clock;
    const auth::RateLimits limits(2, 3, clock);
    for (std::uint32_t left = 3; left-- > 0;) {
        const auto verdict = limits.take("red");
        REQUIRE(verdict);
        CHECK(verdict->allowed);
        CHECK(verdict->limit == 3);
        CHECK(verdict->remaining == left);
    }
    const auto refused = limits.take("red");
    CHECK_FALSE(refused->allowed);
    CHECK(refused->remaining == 0);
    CHECK(refused->retry_after == std::chrono::seconds(1));
    CHECK(refused->reset == std::chrono::seconds(2));
    CHECK(limits.take("blue")->allowed);  // another tenant has its own bucket
    clock.advance(std::chrono::milliseconds(500));
    CHECK(limits.take("red")->allowed);
    CHECK_FALSE(limits.take("red")->allowed);
    clock.advance(std::chrono::hours(1));
    CHECK(limits.take("red")->remaining == 2);  // never more than the burst
}

TEST_CASE("without a rate no request is limited", "[unit][auth]") {
    ManualClock clock;
    const auth::RateLimits limits(0, 0, clock);
    CHECK_FALSE(limits.take("red"));
}

TEST_CASE("tenants that come and go leave no buckets", "[unit][auth]") {
    ManualClock clock;
    const auth::RateLimits limits(10, 10, clock);
    for (int i = 0; i < 5000; ++i) {
        CHECK(limits.take("t" + std::to_string(i))->allowed);
        clock.advance(std::chrono::milliseconds(100));
    }
}
