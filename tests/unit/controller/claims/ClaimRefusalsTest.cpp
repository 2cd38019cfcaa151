#include "tests/unit/controller/claims/Claimants.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::controller::test;
using namespace std::chrono_literals;

TEST_CASE("the retry time of a refusal follows from measured times", "[unit][controller]") {
    Claimants q;
    q.pool.spec.max_members = 2;
    q.pool.spec.max_queue = 2;
    std::vector<std::unique_ptr<Waiting>> line;
    const auto join = [&](const char* tenant) {
        line.push_back(std::make_unique<Waiting>(Waiting{q, tenant}));
        return line.back()->run();
    };
    // Two sandboxes are in use, so a claim gets one when another ends: here every 20 s.
    for (int i = 0; i < 2; ++i) {
        q.makeReady();
        REQUIRE(join("t").starts_with("sb_"));
    }
    for (int i = 0; i < 2; ++i) REQUIRE(join("t") == "waits");
    for (int i = 0; i < 3; ++i) {
        q.clock.advance(20s);
        q.warm.remove("sb_" + std::to_string(i + 1));
        q.makeReady();
        q.queue.offer("p");
        REQUIRE(join("t") == "waits");
    }
    const Error full = errorOf([&] { q.acquire(q.pool, {"t"}); });
    CHECK(full.code() == ErrorCode::PoolExhausted);
    CHECK(full.retryAfter() == 60s);  // it would be third in line

    // The breaker knows the time of the next create.
    Claimants failing;
    for (int i = 0; i < 6; ++i) failing.breaker.failed("p", "no");
    const TimePoint retry = failing.breaker.state("p").retry_at;
    const auto again = [&] {
        return errorOf([&] { failing.acquire(failing.pool, {"t"}); }).retryAfter();
    };
    REQUIRE(retry - failing.clock.now() == 16s);
    CHECK(again() == 17s);
    failing.clock.advance(10s);
    CHECK(again() == 7s);
    failing.clock.advance(10s);  // the create is running, or waits for its turn
    CHECK(again() == 5s);
}

TEST_CASE("the retry time of a claim beyond the limit is when a waiting claim ends",
          "[unit][controller]") {
    Claimants q;
    ClaimQueue small{q.warm, q.work, q.breaker, q.metrics, q.clock, {.all = 4, .of_tenant = 2}};
    q.pool.spec.max_members = 0;
    q.pool.spec.max_wait = 40s;
    Pool other = q.pool;
    other.name = "starts";
    other.spec.max_members = 10;
    other.spec.parallel_creates = 1;
    for (int i = 0; i < 60; ++i) q.breaker.succeeded("starts", 9s);
    std::vector<Task<std::vector<pool::Member>>> waits;
    const auto claim = [&](const Pool& pool, const std::string& tenant) {
        waits.push_back(small.acquire(pool, {tenant}, {"ws"}));
        if (!waits.back().run()) return true;
        waits.back().result();
        return false;
    };
    CHECK(claim(q.pool, "a"));
    q.clock.advance(10s);
    CHECK(claim(q.pool, "a"));
    const Error tenant = errorOf([&] { claim(q.pool, "a"); });
    CHECK(tenant.code() == ErrorCode::RateLimited);
    CHECK(tenant.retryAfter() == 30s);  // the line's speed is unknown: until its first gives up
    CHECK(claim(other, "b"));
    CHECK(errorOf([&] { claim(q.pool, "a"); }).retryAfter() == 30s);  // others' lines do not count
    CHECK(claim(other, "c"));
    const Error all = errorOf([&] { claim(q.pool, "d"); });
    CHECK(all.code() == ErrorCode::Unavailable);
    CHECK(all.retryAfter() == 9s);  // the soonest of all lines
}
