#include <future>
#include <stop_token>

#include "controller/ClaimQueue.h"
#include "tests/unit/base/Support.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::test;
using namespace std::chrono_literals;

namespace {

struct Queue {
    ManualClock clock;
    metrics::Metrics metrics;
    pool::WarmPool warm;
    WorkQueue work{clock, metrics};
    Breaker breaker{clock};
    ClaimQueue queue{warm, work, breaker, metrics, clock};
    Pool pool;
    int made = 0;

    Queue() {
        pool.name = "p";
        pool.spec.max_wait = 1min;
    }
    void makeReady() {
        pool::Member member;
        member.id = "sb_" + std::to_string(++made);
        member.pool = "p";
        warm.add(member);
        warm.warming(member.id);
        warm.ready(member.id, nullptr, clock.wall());
    }
    std::future<std::string> claim(const std::string& workspace, std::stop_token stop = {}) {
        return std::async(std::launch::async, [this, workspace, stop = std::move(stop)] {
            try {
                return queue.acquire(pool, {workspace, "t", {.stop = stop}}).id;
            } catch (const Error& e) {
                return std::string(errorCodeName(e.code()));
            }
        });
    }
    bool waiting(std::size_t count) {
        return eventually([&] { return queue.waiting("p") == count; });
    }
};

}  // namespace

TEST_CASE("a ready sandbox is had at once and belongs to its claimant", "[unit][controller]") {
    Queue q;
    q.makeReady();
    const pool::Member member = q.queue.acquire(q.pool, {"ws_1", "t"});
    CHECK(member.phase == pool::Phase::Claimed);
    CHECK(member.workspace == "ws_1");
    CHECK(q.warm.counts("p").ready == 0);
}

TEST_CASE("who came first is served first", "[unit][controller]") {
    Queue q;
    auto first = q.claim("ws_1");
    REQUIRE(q.waiting(1));
    auto second = q.claim("ws_2");
    REQUIRE(q.waiting(2));
    CHECK(q.work.takeDue() == WorkKey{"pool", "p"});  // the reconciler hears of who waits
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
    Queue q;
    q.pool.spec.on_empty = OnEmpty::Fail;
    const Error error = errorOf([&] { q.queue.acquire(q.pool, {"ws", "t"}); });
    CHECK(error.code() == ErrorCode::PoolExhausted);
    CHECK(error.retryAfter() >= 1s);
}

TEST_CASE("a full queue refuses, and says how long its line takes", "[unit][controller]") {
    Queue q;
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
    Queue q;
    q.pool.spec.max_wait = 1h;
    const Error error = errorOf([&] { q.queue.acquire(q.pool, {"ws", "t", {5ms}}); });
    CHECK(error.code() == ErrorCode::PoolExhausted);
    CHECK(q.queue.waiting("p") == 0);
}

TEST_CASE("a claim that waited in vain leaves the line with a Retry-After", "[unit][controller]") {
    Queue q;
    q.pool.spec.max_wait = 5ms;
    const Error error = errorOf([&] { q.queue.acquire(q.pool, {"ws", "t"}); });
    CHECK(error.code() == ErrorCode::PoolExhausted);
    CHECK(error.retryAfter() >= 1s);
    CHECK(q.queue.waiting("p") == 0);
    q.makeReady();
    q.queue.offer("p");  // to nobody
    CHECK(q.warm.counts("p").ready == 1);
}

TEST_CASE("a degraded pool is refused instead of waited for", "[unit][controller]") {
    Queue q;
    for (int i = 0; i < 3; ++i) q.breaker.failed("p", "no");
    CHECK(codeOf([&] { q.queue.acquire(q.pool, {"ws", "t"}); }) == ErrorCode::PoolDegraded);
    q.makeReady();  // what is ready is still had
    CHECK(q.queue.acquire(q.pool, {"ws", "t"}).id == "sb_1");
}

TEST_CASE("closing releases every waiting claim and refuses later ones", "[unit][controller]") {
    Queue q;
    auto first = q.claim("ws_1");
    auto second = q.claim("ws_2");
    REQUIRE(q.waiting(2));
    q.queue.close(Error(ErrorCode::Unavailable, "no more"));
    CHECK(first.get() == "UNAVAILABLE");
    CHECK(second.get() == "UNAVAILABLE");
    q.makeReady();
    CHECK(codeOf([&] { q.queue.acquire(q.pool, {"ws", "t"}); }) == ErrorCode::Unavailable);
    q.queue.close(Error(ErrorCode::Unavailable, "another reason"));  // the first word counts
    CHECK(std::string(errorOf([&] { q.queue.acquire(q.pool, {"ws", "t"}); }).what()) == "no more");
}

TEST_CASE("a ready sandbox is had at once also while a served claim has not woken yet",
          "[unit][controller]") {
    for (int round = 0; round < 200; ++round) {
        Queue q;
        auto first = q.claim("ws_1");
        REQUIRE(q.waiting(1));
        q.makeReady();
        q.makeReady();
        q.queue.offer("p");
        Pool hasty = q.pool;  // with the pool full nobody would come to offer it
        hasty.spec.max_wait = 20ms;
        CHECK_NOTHROW(q.queue.acquire(hasty, {"ws_2", "t"}));
        CHECK(first.get().starts_with("sb_"));
    }
}

TEST_CASE("a claim that may not wait says what it would wait for, and nothing has happened",
          "[unit][controller]") {
    Queue q;
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
    // What is refused without a wait is refused as ever.
    q.pool.spec.max_queue = 0;
    CHECK(codeOf([&] { q.queue.acquire(q.pool, hasty); }) == ErrorCode::PoolExhausted);
}

TEST_CASE("a claim that is taken back leaves the line at once", "[unit][controller]") {
    Queue q;
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
        Queue q;
        std::stop_source stop;
        auto taken = q.claim("ws_1", stop.get_token());
        REQUIRE(q.waiting(1));
        std::optional<std::future<std::string>> next;
        if (round % 2 == 0) {
            next = q.claim("ws_2");
            REQUIRE(q.waiting(2));
        }
        q.makeReady();
        // By turns the claim is taken back just before it is served, and just after.
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
    Queue q;
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
    Queue q;
    q.pool.spec.max_wait = 1h;
    auto claim = q.claim("ws");
    REQUIRE(q.waiting(1));
    q.breaker.layer("p", "its packages cannot be installed");
    q.queue.tellHopeless("p");
    CHECK(claim.get() == "POOL_DEGRADED");
    CHECK(q.queue.waiting("p") == 0);
}
