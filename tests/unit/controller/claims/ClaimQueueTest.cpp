#include "tests/unit/controller/claims/Claimants.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::controller::test;
using namespace std::chrono_literals;

TEST_CASE("a ready sandbox is had at once and belongs to its claimant", "[unit][controller]") {
    Claimants q;
    q.makeReady();
    const pool::Member member = q.queue.acquire(q.pool, {"ws_1", "t"});
    CHECK(member.phase == pool::Phase::Claimed);
    CHECK(member.workspace == "ws_1");
    CHECK(q.warm.counts("p").ready == 0);
}

TEST_CASE("who came first is served first", "[unit][controller]") {
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
    const Error error = errorOf([&] { q.queue.acquire(q.pool, {"ws", "t"}); });
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
    const Error error = errorOf([&] { q.queue.acquire(q.pool, {"ws", "t"}); });
    CHECK(error.code() == ErrorCode::PoolExhausted);
    CHECK(error.retryAfter() >= 39s);
    CHECK(error.retryAfter() <= 41s);
    q.queue.close(Error(ErrorCode::Unavailable, "no more"));
}

TEST_CASE("a claimant with less patience than the pool leaves the line sooner",
          "[unit][controller]") {
    Claimants q;
    q.pool.spec.max_wait = 1h;
    const Error error = errorOf([&] { q.queue.acquire(q.pool, {"ws", "t", {5ms}}); });
    CHECK(error.code() == ErrorCode::PoolExhausted);
    CHECK(q.queue.waiting("p") == 0);
}

TEST_CASE("a claim that waited in vain leaves the line with a Retry-After", "[unit][controller]") {
    Claimants q;
    q.pool.spec.max_wait = 5ms;
    const Error error = errorOf([&] { q.queue.acquire(q.pool, {"ws", "t"}); });
    CHECK(error.code() == ErrorCode::PoolExhausted);
    CHECK(error.retryAfter() >= 1s);
    CHECK(q.queue.waiting("p") == 0);
    q.makeReady();
    q.queue.offer("p");  // nobody waits any more
    CHECK(q.warm.counts("p").ready == 1);
}

TEST_CASE("a degraded pool is refused instead of waited for", "[unit][controller]") {
    Claimants q;
    for (int i = 0; i < 3; ++i) q.breaker.failed("p", "no");
    CHECK(codeOf([&] { q.queue.acquire(q.pool, {"ws", "t"}); }) == ErrorCode::PoolDegraded);
    q.makeReady();  // a ready sandbox is still given out
    CHECK(q.queue.acquire(q.pool, {"ws", "t"}).id == "sb_1");
}

TEST_CASE("closing releases every waiting claim and refuses later ones", "[unit][controller]") {
    Claimants q;
    auto first = q.claim("ws_1");
    auto second = q.claim("ws_2");
    REQUIRE(q.waiting(2));
    q.queue.close(Error(ErrorCode::Unavailable, "no more"));
    CHECK(first.get() == "UNAVAILABLE");
    CHECK(second.get() == "UNAVAILABLE");
    q.makeReady();
    CHECK(codeOf([&] { q.queue.acquire(q.pool, {"ws", "t"}); }) == ErrorCode::Unavailable);
    q.queue.close(Error(ErrorCode::Unavailable, "another reason"));  // the first error counts
    CHECK(std::string(errorOf([&] { q.queue.acquire(q.pool, {"ws", "t"}); }).what()) == "no more");
}

TEST_CASE("while waiting is barred, claims get what is ready or the reason, at once",
          "[unit][controller]") {
    Claimants q;
    q.pool.spec.max_wait = 1h;
    auto waits = q.claim("ws_1");
    REQUIRE(q.waiting(1));
    q.queue.bar(Error(ErrorCode::Unavailable, "another may lead"));
    CHECK(waits.get() == "UNAVAILABLE");
    CHECK(std::string(errorOf([&] {
                          q.queue.acquire(q.pool, {"ws", "t"});
                      }).what()) == "another may lead");
    ClaimPatience threadless;
    threadless.waits = false;
    threadless.wait = std::make_shared<ClaimWait>();
    CHECK(codeOf([&] {
              q.queue.acquire(q.pool, {"ws", "t", threadless});
          }) == ErrorCode::Unavailable);
    CHECK(q.queue.waiting("p") == 0);
    q.makeReady();
    CHECK(q.queue.acquire(q.pool, {"ws", "t"}).id == "sb_1");
    q.queue.bar(std::nullopt);
    auto again = q.claim("ws_2");
    REQUIRE(q.waiting(1));
    q.makeReady();
    q.queue.offer("p");
    CHECK(again.get() == "sb_2");
}

TEST_CASE("a ready sandbox is had at once also while a served claim has not woken yet",
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
        CHECK_NOTHROW(q.queue.acquire(hasty, {"ws_2", "t"}));
        CHECK(first.get().starts_with("sb_"));
    }
}

TEST_CASE("a claim that may not wait says what it would wait for, and nothing has happened",
          "[unit][controller]") {
    Claimants q;
    q.metrics.bornPool("p");
    const ClaimQueue::Claimant hasty{"ws", "t", {.waits = false}};
    try {
        q.queue.acquire(q.pool, hasty);
        FAIL("it has waited");
    } catch (const MustWait& wait) {
        CHECK(std::string(wait.what()) == "a sandbox of pool p");
    }
    CHECK(q.queue.waiting("p") == 0);
    CHECK_FALSE(q.work.takeDue());
    CHECK(q.metrics.render().find("hearth_pool_exhausted_total{pool=\"p\"} 0") !=
          std::string::npos);
    q.makeReady();
    CHECK(q.queue.acquire(q.pool, hasty).id == "sb_1");
    // A claim that is refused before any wait is still refused.
    q.pool.spec.max_queue = 0;
    CHECK(codeOf([&] { q.queue.acquire(q.pool, hasty); }) == ErrorCode::PoolExhausted);
}

TEST_CASE("a claim that is taken back leaves the line at once", "[unit][controller]") {
    Claimants q;
    std::stop_source first;
    auto taken = q.claim("ws_1", first.get_token());
    REQUIRE(q.waiting(1));
    auto second = q.claim("ws_2");
    REQUIRE(q.waiting(2));
    first.request_stop();
    CHECK(taken.get() == "UNAVAILABLE");
    CHECK(q.queue.waiting("p") == 1);
    q.makeReady();
    q.queue.offer("p");
    CHECK(second.get() == "sb_1");
    q.makeReady();
    CHECK(q.claim("ws_3", first.get_token()).get() == "UNAVAILABLE");
    CHECK(q.warm.counts("p").ready == 1);
}

TEST_CASE("a sandbox that a claim was given as it was taken back goes to the next, or back",
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
        CHECK((had || outcome == "UNAVAILABLE"));
        if (next && !had) {
            CHECK(next->get() == "sb_1");
            CHECK(q.warm.find("sb_1")->workspace == "ws_2");
        } else if (next) {
            q.queue.close(Error(ErrorCode::Unavailable, "no more"));
            CHECK(next->get() == "UNAVAILABLE");
        } else {
            CHECK(q.warm.counts("p").ready == (had ? 0 : 1));
        }
    }
}

TEST_CASE("why a pool is degraded is told to who may know of the host, and to nobody else",
          "[unit][controller]") {
    Claimants q;
    for (int i = 0; i < 3; ++i) q.breaker.failed("p", "no space on /dev/sda1");
    const Error user = errorOf([&] { q.queue.acquire(q.pool, {"ws", "t"}); });
    CHECK(user.code() == ErrorCode::PoolDegraded);
    CHECK(std::string(user.what()).find("sda1") == std::string::npos);
    CHECK(user.hint().find("operator") != std::string::npos);
    const Error operators = errorOf([&] { q.queue.acquire(q.pool, {"ws", "t", {}, true}); });
    CHECK(operators.code() == ErrorCode::PoolDegraded);
    CHECK(std::string(operators.what()) ==
          "pool p cannot make sandboxes at the moment: no space on /dev/sda1");
}

TEST_CASE("who waits for what can never be made is told so at once", "[unit][controller]") {
    Claimants q;
    q.pool.spec.max_wait = 1h;
    auto claim = q.claim("ws");
    REQUIRE(q.waiting(1));
    q.breaker.layer("p", "its packages cannot be installed");
    q.queue.tellHopeless("p");
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
            q.queue.acquire(q.pool, {"ws_1", "t"});
        }
        Threadless claim{q, "t"};
        REQUIRE(claim.run() == "waits");
        for (int i = 0; i < 2; ++i) q.breaker.failed("p", "there is no image");
        q.queue.tellHopeless("p");
        CHECK_FALSE(claim.wait->due());
        q.breaker.failed("p", "there is no image");
        q.queue.tellHopeless("p");
        CHECK(claim.wait->due() == !held);
        CHECK(claim.run() == (held ? "waits" : "POOL_DEGRADED"));
    }
}

TEST_CASE("a claim stands in line without a thread and is told when it need not wait",
          "[unit][controller]") {
    Claimants q;
    Threadless claim{q, "t"};
    CHECK(claim.run() == "waits");
    CHECK(q.queue.waiting("p") == 1);
    CHECK(q.work.takeDue() == WorkKey{WorkKind::Pool, "p"});
    CHECK_FALSE(claim.wait->due());
    CHECK(claim.run() == "waits");  // a run that is too early keeps the place
    CHECK(q.queue.waiting("p") == 1);
    q.makeReady();
    q.queue.offer("p");
    CHECK(*claim.told == 1);
    CHECK(claim.wait->due());
    CHECK(q.queue.waiting("p") == 0);
    CHECK(claim.run() == "sb_1");
    CHECK_FALSE(claim.wait->stage());
    claim.hangUp();
    CHECK(q.warm.counts("p").claimed == 1);  // held by the claim, not by the line
}

TEST_CASE("a claim that nobody wants any more leaves the line, and its sandbox goes to the next",
          "[unit][controller]") {
    Claimants q;
    Threadless first{q, "t"};
    Threadless second{q, "t"};
    Threadless third{q, "t"};
    for (Threadless* each : {&first, &second, &third}) REQUIRE(each->run() == "waits");
    first.hangUp();
    CHECK(q.queue.waiting("p") == 2);
    CHECK(q.metrics.render().find("pool=\"p\",result=\"cancelled\"} 1") != std::string::npos);
    q.makeReady();
    q.queue.offer("p");
    REQUIRE(second.wait->due());
    second.hangUp();
    CHECK(*third.told == 1);
    CHECK(third.run() == "sb_1");
    Threadless last{q, "t"};
    REQUIRE(last.run() == "waits");
    q.makeReady();
    q.queue.offer("p");
    last.hangUp();
    CHECK(q.warm.counts("p").ready == 1);
}

TEST_CASE("a claim without a thread waits no longer than the pool lets it", "[unit][controller]") {
    Claimants q;
    Threadless claim{q, "t"};
    REQUIRE(claim.run() == "waits");
    CHECK(claim.wait->until() == q.clock.now() + 1min);
    q.clock.advance(1min);
    CHECK(claim.wait->due());
    CHECK(claim.run() == "POOL_EXHAUSTED");
    CHECK(q.queue.waiting("p") == 0);
    Threadless other{q, "t"};
    REQUIRE(other.run() == "waits");
    q.queue.close(Error(ErrorCode::Unavailable, "no more"));
    CHECK(*other.told == 1);
    CHECK(other.run() == "UNAVAILABLE");
}

TEST_CASE("members go to tenants by turns", "[unit][controller]") {
    Claimants q;
    std::vector<std::unique_ptr<Threadless>> line;
    for (const char* tenant : {"a", "a", "a", "b"}) {
        line.push_back(std::make_unique<Threadless>(Threadless{q, tenant}));
        REQUIRE(line.back()->run() == "waits");
    }
    q.makeReady();
    q.makeReady();
    q.queue.offer("p");
    CHECK(line[0]->wait->due());
    CHECK(line[3]->wait->due());
    CHECK_FALSE(line[1]->wait->due());
}

TEST_CASE("a full line is shared: who has less of it displaces the newest of who has most",
          "[unit][controller]") {
    Claimants q;
    q.pool.spec.max_queue = 4;
    std::vector<std::unique_ptr<Threadless>> greedy;
    for (int i = 0; i < 4; ++i) {
        greedy.push_back(std::make_unique<Threadless>(Threadless{q, "greedy"}));
        REQUIRE(greedy.back()->run() == "waits");
    }
    CHECK(Threadless{q, "greedy"}.run() == "POOL_EXHAUSTED");
    Threadless one{q, "modest"};
    CHECK(one.run() == "waits");
    CHECK(*greedy[3]->told == 1);
    CHECK(greedy[3]->run() == "POOL_EXHAUSTED");
    CHECK(greedy[2]->run() == "waits");
    Threadless two{q, "modest"};
    CHECK(two.run() == "waits");
    CHECK(greedy[2]->run() == "POOL_EXHAUSTED");
    CHECK(Threadless{q, "modest"}.run() == "POOL_EXHAUSTED");  // each tenant has half
    CHECK(q.queue.waiting("p") == 4);
}

TEST_CASE("claims that wait are bounded for a tenant and in all", "[unit][controller]") {
    Claimants q;
    ClaimQueue small{q.warm, q.work, q.breaker, q.metrics, q.clock, {.all = 3, .of_tenant = 2}};
    std::vector<std::shared_ptr<ClaimWait>> waits;
    const auto claim = [&](const std::string& tenant) {
        waits.push_back(std::make_shared<ClaimWait>());
        ClaimPatience patience;
        patience.waits = false;
        patience.wait = waits.back();
        small.acquire(q.pool, {"ws", tenant, patience});
    };
    CHECK_THROWS_AS(claim("a"), MustWait);
    CHECK_THROWS_AS(claim("a"), MustWait);
    const Error tenant = errorOf([&] { claim("a"); });
    CHECK(tenant.code() == ErrorCode::RateLimited);
    CHECK(tenant.retryAfter() >= 1s);
    CHECK_THROWS_AS(claim("b"), MustWait);
    const Error all = errorOf([&] { claim("c"); });
    CHECK(all.code() == ErrorCode::Unavailable);
    CHECK(all.retryAfter() >= 1s);
    waits.clear();
    CHECK_THROWS_AS(claim("a"), MustWait);
}

TEST_CASE("tenants that let all claims wait that they can leave room for the next",
          "[unit][controller]") {
    Claimants q;
    q.pool.spec.max_queue = 1000;
    ClaimQueue small{q.warm, q.work, q.breaker, q.metrics, q.clock, {.all = 16, .of_tenant = 4}};
    std::vector<std::shared_ptr<ClaimWait>> waits;
    const auto claim = [&](const std::string& tenant) {
        waits.push_back(std::make_shared<ClaimWait>());
        ClaimPatience patience;
        patience.waits = false;
        patience.wait = waits.back();
        small.acquire(q.pool, {"ws", tenant, patience});
    };
    for (const std::string tenant : {"a", "b", "c", "d"}) {
        std::optional<ErrorCode> refused;
        while (!refused) {
            try {
                claim(tenant);
            } catch (const MustWait&) {
            } catch (const Error& e) {
                refused = e.code();
            }
        }
        CHECK(refused == ErrorCode::RateLimited);
    }
    CHECK_THROWS_AS(claim("next"), MustWait);
}

TEST_CASE("a claim knows its place, and how long it takes where that can be told",
          "[unit][controller]") {
    Claimants q;
    q.pool.spec.parallel_creates = 1;
    for (int i = 0; i < 40; ++i) q.breaker.succeeded("p", 10s);
    Threadless first{q, "a"};
    Threadless second{q, "a"};
    Threadless third{q, "b"};
    for (Threadless* each : {&first, &second, &third}) REQUIRE(each->run() == "waits");
    const ClaimWait::Progress progress = *second.wait->progress();
    CHECK(progress.what_for == "a sandbox of pool p");
    CHECK(progress.place == 3);
    CHECK(progress.of == 3);
    REQUIRE(progress.estimate);
    CHECK(*progress.estimate >= 29s);
    CHECK(*progress.estimate <= 31s);
    CHECK(third.wait->progress()->place == 2);
    // At the pool's limit, the estimate depends on how fast sandboxes are freed.
    q.pool.spec.max_members = 0;
    std::vector<std::unique_ptr<Threadless>> more;
    for (int i = 0; i < 4; ++i) {
        more.push_back(std::make_unique<Threadless>(Threadless{q, "c"}));
        REQUIRE(more.back()->run() == "waits");
    }
    CHECK_FALSE(more[3]->wait->progress()->estimate);
    for (int i = 0; i < 2; ++i) {
        q.clock.advance(7s);
        q.makeReady();
        q.queue.offer("p");
    }
    const ClaimWait::Progress later = *more[3]->wait->progress();
    REQUIRE(later.estimate);
    CHECK(*later.estimate == std::chrono::seconds(7 * later.place));
}

TEST_CASE("a refused claim of several counts as one in the forecast", "[unit][controller]") {
    Claimants q;
    const auto claim = [&](const std::shared_ptr<ClaimWait>& wait) {
        q.queue.acquireAll(q.pool, {"", "t", {.waits = false, .wait = wait}}, {"a", "b", "c"});
    };
    const auto wait = std::make_shared<ClaimWait>();
    q.pool.spec.on_empty = OnEmpty::Fail;
    for (int i = 0; i < 2; ++i) {
        CHECK(codeOf([&] { claim(wait); }) == ErrorCode::PoolExhausted);
    }
    CHECK(q.queue.arrivals("p").claims == 2);
    CHECK(q.queue.arrivals("p").missed == 2);
    q.pool.spec.on_empty = OnEmpty::Queue;
    CHECK_THROWS_AS(claim(wait), MustWait);
    CHECK(q.queue.arrivals("p").claims == 5);
    CHECK(q.queue.arrivals("p").missed == 5);
}
