#include "tests/unit/controller/claims/Claimants.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::controller::test;
using namespace std::chrono_literals;

TEST_CASE("a ready sandbox is claimed at once and belongs to its claimant", "[unit][controller]") {
    Claimants q;
    q.makeReady();
    const pool::Member member = q.acquire(q.pool, {"t"}, "ws_1");
    CHECK(member.phase == pool::Phase::Claimed);
    CHECK(member.workspace == "ws_1");
    CHECK(q.warm.counts("p").ready == 0);
}

TEST_CASE("claims are served in the order of their arrival", "[unit][controller]") {
    Claimants q;
    auto first = q.claim("ws_1");
    REQUIRE(q.waiting(1));
    auto second = q.claim("ws_2");
    REQUIRE(q.waiting(2));
    CHECK(q.work.takeDue() == WorkKey{WorkKind::Pool, "p"});  // the reconciler is notified
    q.makeReady();
    q.queue.offer("p");
    CHECK(first.get() == "sb_1");
    CHECK(q.waiting(1));
    q.makeReady();
    q.queue.offer("p");
    CHECK(second.get() == "sb_2");
    CHECK(q.warm.find("sb_2")->workspace == "ws_2");
}

TEST_CASE("a pool that fails on empty refuses at once", "[unit][controller]") {
    Claimants q;
    q.pool.spec.on_empty = OnEmpty::Fail;
    const Error error = errorOf([&] { q.acquire(q.pool, {"t"}, "ws"); });
    CHECK(error.code() == ErrorCode::PoolExhausted);
    CHECK(error.retryAfter() >= 1s);
}

TEST_CASE("a full queue refuses, and says how long its line takes", "[unit][controller]") {
    Claimants q;
    q.pool.spec.max_queue = 3;
    q.pool.spec.parallel_creates = 1;
    for (int i = 0; i < 40; ++i) q.breaker.succeeded("p", 10s);
    std::vector<std::future<std::string>> line;
    for (int i = 0; i < 3; ++i) line.push_back(q.claim("ws"));
    REQUIRE(q.waiting(3));
    const Error error = errorOf([&] { q.acquire(q.pool, {"t"}, "ws"); });
    CHECK(error.code() == ErrorCode::PoolExhausted);
    CHECK(error.retryAfter() >= 39s);
    CHECK(error.retryAfter() <= 41s);
    q.queue.setGate(ClaimQueue::Gate::Closed, Error(ErrorCode::Unavailable, "no more"));
}

TEST_CASE("a claimant with less patience than the pool leaves the line sooner",
          "[unit][controller]") {
    Claimants q;
    q.pool.spec.max_wait = 1h;
    const Error error = errorOf([&] { q.acquire(q.pool, {"t", 5ms}); });
    CHECK(error.code() == ErrorCode::PoolExhausted);
    CHECK(q.queue.waiting("p") == 0);
}

TEST_CASE("a claim that waited in vain leaves the line with a Retry-After", "[unit][controller]") {
    Claimants q;
    q.pool.spec.max_wait = 5ms;
    const Error error = errorOf([&] { q.acquire(q.pool, {"t"}, "ws"); });
    CHECK(error.code() == ErrorCode::PoolExhausted);
    CHECK(error.retryAfter() >= 1s);
    CHECK(q.queue.waiting("p") == 0);
    q.makeReady();
    q.queue.offer("p");  // nobody waits any more
    CHECK(q.warm.counts("p").ready == 1);
}

TEST_CASE("a claim of a degraded pool is refused instead of waiting", "[unit][controller]") {
    Claimants q;
    for (int i = 0; i < 3; ++i) q.breaker.failed("p", "no");
    CHECK(codeOf([&] { q.acquire(q.pool, {"t"}, "ws"); }) == ErrorCode::PoolDegraded);
    q.makeReady();  // a ready sandbox is still given out
    CHECK(q.acquire(q.pool, {"t"}, "ws").id == "sb_1");
}

TEST_CASE("closing releases every waiting claim and refuses later ones", "[unit][controller]") {
    Claimants q;
    auto first = q.claim("ws_1");
    auto second = q.claim("ws_2");
    REQUIRE(q.waiting(2));
    q.queue.setGate(ClaimQueue::Gate::Closed, Error(ErrorCode::Unavailable, "no more"));
    CHECK(first.get() == "UNAVAILABLE");
    CHECK(second.get() == "UNAVAILABLE");
    q.makeReady();
    CHECK(codeOf([&] { q.acquire(q.pool, {"t"}, "ws"); }) == ErrorCode::Unavailable);
    q.queue.setGate(ClaimQueue::Gate::Closed,
                    Error(ErrorCode::Unavailable, "another reason"));  // the first error counts
    CHECK(std::string(errorOf([&] { q.acquire(q.pool, {"t"}, "ws"); }).what()) == "no more");
}

TEST_CASE("while waiting is barred, claims get a ready sandbox or the reason at once",
          "[unit][controller]") {
    Claimants q;
    q.pool.spec.max_wait = 1h;
    auto waits = q.claim("ws_1");
    REQUIRE(q.waiting(1));
    q.queue.setGate(ClaimQueue::Gate::ReadyOnly, Error(ErrorCode::Unavailable, "another may lead"));
    CHECK(waits.get() == "UNAVAILABLE");
    CHECK(std::string(errorOf([&] { q.acquire(q.pool, {"t"}, "ws"); }).what()) ==
          "another may lead");
    CHECK(q.queue.waiting("p") == 0);
    q.makeReady();
    CHECK(q.acquire(q.pool, {"t"}, "ws").id == "sb_1");
    q.queue.setGate(ClaimQueue::Gate::ReadyOnly, std::nullopt);
    auto again = q.claim("ws_2");
    REQUIRE(q.waiting(1));
    q.makeReady();
    q.queue.offer("p");
    CHECK(again.get() == "sb_2");
}

TEST_CASE("a claim gets a ready sandbox at once while a served claim has not woken yet",
          "[unit][controller]") {
    for (int round = 0; round < 200; ++round) {
        Claimants q;
        auto first = q.claim("ws_1");
        REQUIRE(q.waiting(1));
        q.makeReady();
        q.makeReady();
        q.queue.offer("p");
        Pool hasty = q.pool;  // at once: a full pool makes no further offer
        hasty.spec.max_wait = 20ms;
        CHECK_NOTHROW(q.acquire(hasty, {"t"}, "ws_2"));
        CHECK(first.get().starts_with("sb_"));
    }
}

TEST_CASE("a cancelled claim leaves the line at once", "[unit][controller]") {
    Claimants q;
    std::stop_source first;
    auto taken = q.claim("ws_1", first.get_token());
    REQUIRE(q.waiting(1));
    auto second = q.claim("ws_2");
    REQUIRE(q.waiting(2));
    first.request_stop();
    CHECK(taken.get() == "cancelled");
    CHECK(q.queue.waiting("p") == 1);
    q.makeReady();
    q.queue.offer("p");
    CHECK(second.get() == "sb_1");
    q.makeReady();
    CHECK(q.claim("ws_3", first.get_token()).get() == "cancelled");
    CHECK(q.warm.counts("p").ready == 1);
}

TEST_CASE("the sandbox of a cancelled claim goes to the next claim, or back to the pool",
          "[unit][controller]") {
    for (int round = 0; round < 200; ++round) {
        Claimants q;
        std::stop_source stop;
        auto taken = q.claim("ws_1", stop.get_token());
        REQUIRE(q.waiting(1));
        std::optional<std::future<std::string>> next;
        if (round % 2 == 0) {
            next = q.claim("ws_2");
            REQUIRE(q.waiting(2));
        }
        q.makeReady();
        // Alternately, the claim is cancelled just before and just after it is served.
        if (round % 4 < 2) stop.request_stop();
        q.queue.offer("p");
        stop.request_stop();
        const std::string outcome = taken.get();
        const bool had = outcome == "sb_1";
        CHECK((had || outcome == "cancelled"));
        if (next && !had) {
            CHECK(next->get() == "sb_1");
            CHECK(q.warm.find("sb_1")->workspace == "ws_2");
        } else if (next) {
            q.queue.setGate(ClaimQueue::Gate::Closed, Error(ErrorCode::Unavailable, "no more"));
            CHECK(next->get() == "UNAVAILABLE");
        } else {
            CHECK(q.warm.counts("p").ready == (had ? 0 : 1));
        }
    }
}

TEST_CASE("only callers who may know of the host learn why a pool is degraded",
          "[unit][controller]") {
    Claimants q;
    for (int i = 0; i < 3; ++i) q.breaker.failed("p", "no space on /dev/sda1");
    const Error user = errorOf([&] { q.acquire(q.pool, {"t"}, "ws"); });
    CHECK(user.code() == ErrorCode::PoolDegraded);
    CHECK(std::string(user.what()).find("sda1") == std::string::npos);
    CHECK(user.hint().find("operator") != std::string::npos);
    const Error operators = errorOf([&] { q.acquire(q.pool, {"t", 1h, true}); });
    CHECK(operators.code() == ErrorCode::PoolDegraded);
    CHECK(std::string(operators.what()) ==
          "pool p cannot make sandboxes at the moment: no space on /dev/sda1");
}

TEST_CASE("waiting claims are refused at once when the pool's packages cannot be installed",
          "[unit][controller]") {
    Claimants q;
    q.pool.spec.max_wait = 1h;
    auto claim = q.claim("ws");
    REQUIRE(q.waiting(1));
    q.breaker.layer("p", "its packages cannot be installed");
    q.queue.failWaiting("p");
    CHECK(claim.get() == "POOL_DEGRADED");
    CHECK(q.queue.waiting("p") == 0);
}

TEST_CASE("claims that wait are refused when creates fail, unless a sandbox may come free",
          "[unit][controller]") {
    for (const bool held : {false, true}) {
        Claimants q;
        q.pool.spec.max_wait = 1h;
        if (held) {
            q.makeReady();
            q.acquire(q.pool, {"t"}, "ws_1");
        }
        Waiting claim{q, "t"};
        REQUIRE(claim.run() == "waits");
        for (int i = 0; i < 2; ++i) q.breaker.failed("p", "there is no image");
        q.queue.failWaiting("p");
        CHECK_FALSE(claim.due());
        q.breaker.failed("p", "there is no image");
        q.queue.failWaiting("p");
        CHECK(claim.due() == !held);
        CHECK(claim.run() == (held ? "waits" : "POOL_DEGRADED"));
    }
}

TEST_CASE("a claim waits in line without a thread, and is notified when its wait is over",
          "[unit][controller]") {
    Claimants q;
    Waiting claim{q, "t"};
    CHECK(claim.run() == "waits");
    CHECK(q.queue.waiting("p") == 1);
    CHECK(q.work.takeDue() == WorkKey{WorkKind::Pool, "p"});
    CHECK_FALSE(claim.due());
    CHECK(claim.run() == "waits");  // a run that is too early keeps the place
    CHECK(q.queue.waiting("p") == 1);
    q.makeReady();
    q.queue.offer("p");
    CHECK(*claim.told == 1);
    CHECK(claim.due());
    CHECK(q.queue.waiting("p") == 0);
    CHECK(claim.run() == "sb_1");
    CHECK_FALSE(claim.claim);
    claim.hangUp();
    CHECK(q.warm.counts("p").claimed == 1);  // held by the claim, not by the line
}

TEST_CASE("an abandoned claim leaves the line, and its sandbox goes to the next claim",
          "[unit][controller]") {
    Claimants q;
    Waiting first{q, "t"};
    Waiting second{q, "t"};
    Waiting third{q, "t"};
    for (Waiting* each : {&first, &second, &third}) REQUIRE(each->run() == "waits");
    first.hangUp();
    CHECK(q.queue.waiting("p") == 2);
    q.makeReady();
    q.queue.offer("p");
    REQUIRE(second.due());
    second.hangUp();
    CHECK(*third.told == 1);
    CHECK(third.run() == "sb_1");
    Waiting last{q, "t"};
    REQUIRE(last.run() == "waits");
    q.makeReady();
    q.queue.offer("p");
    last.hangUp();
    CHECK(q.warm.counts("p").ready == 1);
}

TEST_CASE("a claim without a thread waits no longer than the pool lets it", "[unit][controller]") {
    Claimants q;
    Waiting claim{q, "t"};
    REQUIRE(claim.run() == "waits");
    CHECK(claim.claim->wait()->until() == q.clock.now() + 1min);
    q.clock.advance(1min);
    CHECK(claim.due());
    CHECK(claim.run() == "POOL_EXHAUSTED");
    CHECK(q.queue.waiting("p") == 0);
    Waiting other{q, "t"};
    REQUIRE(other.run() == "waits");
    q.queue.setGate(ClaimQueue::Gate::Closed, Error(ErrorCode::Unavailable, "no more"));
    CHECK(*other.told == 1);
    CHECK(other.run() == "UNAVAILABLE");
}

TEST_CASE("members go to tenants by turns", "[unit][controller]") {
    Claimants q;
    std::vector<std::unique_ptr<Waiting>> line;
    for (const char* tenant : {"a", "a", "a", "b"}) {
        line.push_back(std::make_unique<Waiting>(Waiting{q, tenant}));
        REQUIRE(line.back()->run() == "waits");
    }
    q.makeReady();
    q.makeReady();
    q.queue.offer("p");
    CHECK(line[0]->due());
    CHECK(line[3]->due());
    CHECK_FALSE(line[1]->due());
}

TEST_CASE("a tenant with few claims in a full line displaces the newest claim of the largest",
          "[unit][controller]") {
    Claimants q;
    q.pool.spec.max_queue = 4;
    std::vector<std::unique_ptr<Waiting>> greedy;
    for (int i = 0; i < 4; ++i) {
        greedy.push_back(std::make_unique<Waiting>(Waiting{q, "greedy"}));
        REQUIRE(greedy.back()->run() == "waits");
    }
    CHECK(Waiting{q, "greedy"}.run() == "POOL_EXHAUSTED");
    Waiting one{q, "modest"};
    CHECK(one.run() == "waits");
    CHECK(*greedy[3]->told == 1);
    CHECK(greedy[3]->run() == "POOL_EXHAUSTED");
    CHECK(greedy[2]->run() == "waits");
    Waiting two{q, "modest"};
    CHECK(two.run() == "waits");
    CHECK(greedy[2]->run() == "POOL_EXHAUSTED");
    CHECK(Waiting{q, "modest"}.run() == "POOL_EXHAUSTED");  // each tenant has half
    CHECK(q.queue.waiting("p") == 4);
}

TEST_CASE("claims that wait are bounded for a tenant and in all", "[unit][controller]") {
    Claimants q;
    ClaimQueue small{q.warm, q.work, q.breaker, q.metrics, q.clock, {.all = 3, .of_tenant = 2}};
    std::vector<Task<std::vector<pool::Member>>> waits;
    const auto claim = [&](const std::string& tenant) {
        waits.push_back(small.acquire(q.pool, {tenant}, {"ws"}));
        if (!waits.back().run()) return true;
        waits.back().result();
        return false;
    };
    CHECK(claim("a"));
    CHECK(claim("a"));
    const Error tenant = errorOf([&] { claim("a"); });
    CHECK(tenant.code() == ErrorCode::RateLimited);
    CHECK(tenant.retryAfter() >= 1s);
    CHECK(claim("b"));
    const Error all = errorOf([&] { claim("c"); });
    CHECK(all.code() == ErrorCode::Unavailable);
    CHECK(all.retryAfter() >= 1s);
    waits.clear();
    CHECK(claim("a"));
}

TEST_CASE("tenants at their limit of waiting claims leave room for the next tenant",
          "[unit][controller]") {
    Claimants q;
    q.pool.spec.max_queue = 1000;
    ClaimQueue small{q.warm, q.work, q.breaker, q.metrics, q.clock, {.all = 16, .of_tenant = 4}};
    std::vector<Task<std::vector<pool::Member>>> waits;
    const auto claim = [&](const std::string& tenant) {
        waits.push_back(small.acquire(q.pool, {tenant}, {"ws"}));
        if (!waits.back().run()) return true;
        waits.back().result();
        return false;
    };
    for (const std::string tenant : {"a", "b", "c", "d"}) {
        std::optional<ErrorCode> refused;
        while (!refused) {
            try {
                claim(tenant);
            } catch (const Error& e) {
                refused = e.code();
            }
        }
        CHECK(refused == ErrorCode::RateLimited);
    }
    CHECK(claim("next"));
}

TEST_CASE("a claim knows its place in line, and its time where that can be estimated",
          "[unit][controller]") {
    Claimants q;
    q.pool.spec.parallel_creates = 1;
    for (int i = 0; i < 40; ++i) q.breaker.succeeded("p", 10s);
    Waiting first{q, "a"};
    Waiting second{q, "a"};
    Waiting third{q, "b"};
    for (Waiting* each : {&first, &second, &third}) REQUIRE(each->run() == "waits");
    const Waitable::Progress progress = second.progress();
    CHECK(progress.what_for == "a sandbox of pool p");
    CHECK(progress.place == 3);
    CHECK(progress.of == 3);
    REQUIRE(progress.estimate);
    CHECK(*progress.estimate >= 29s);
    CHECK(*progress.estimate <= 31s);
    CHECK(third.progress().place == 2);
    // At the pool's limit, the estimate depends on how fast sandboxes are freed.
    q.pool.spec.max_members = 0;
    std::vector<std::unique_ptr<Waiting>> more;
    for (int i = 0; i < 4; ++i) {
        more.push_back(std::make_unique<Waiting>(Waiting{q, "c"}));
        REQUIRE(more.back()->run() == "waits");
    }
    CHECK_FALSE(more[3]->progress().estimate);
    for (int i = 0; i < 2; ++i) {
        q.clock.advance(7s);
        q.makeReady();
        q.queue.offer("p");
    }
    const Waitable::Progress later = more[3]->progress();
    REQUIRE(later.estimate);
    CHECK(*later.estimate == std::chrono::seconds(7 * later.place));
}

TEST_CASE("a refused claim of several sandboxes counts as one in the forecast",
          "[unit][controller]") {
    Claimants q;
    std::optional<Stepped<std::vector<pool::Member>>> claim;
    const auto waits = [&] {
        claim.emplace(q.queue.acquire(q.pool, {"t"}, {"a", "b", "c"}), q.clock);
        if (!claim->run()) return true;
        claim->result();
        return false;
    };
    q.pool.spec.on_empty = OnEmpty::Fail;
    for (int i = 0; i < 2; ++i) CHECK(codeOf([&] { waits(); }) == ErrorCode::PoolExhausted);
    CHECK(q.queue.arrivals("p").claims == 2);
    CHECK(q.queue.arrivals("p").missed == 2);
    q.pool.spec.on_empty = OnEmpty::Queue;
    CHECK(waits());
    CHECK(q.queue.arrivals("p").claims == 5);
    CHECK(q.queue.arrivals("p").missed == 5);
}
