#include <optional>
#include <thread>

#include "base/task/Blocking.h"
#include "controller/claims/ClaimQueue.h"
#include "tests/support/Stepped.h"
#include "tests/support/Support.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::test;
using namespace std::chrono_literals;

namespace {

/// A claim that the test runs by hand.
struct Claim {
    std::optional<Stepped<std::vector<pool::Member>>> task;
    bool due() const { return !task || task->due(); }
};

/// A queue whose claims are run by hand, so that their order is exact.
struct SharedLine {
    ManualClock clock;
    metrics::Metrics metrics;
    pool::WarmPool warm;
    WorkQueue work{clock, metrics};
    CircuitBreaker breaker{clock};
    QuotaLedger quotas;
    ClaimQueue queue{warm, work, breaker, metrics, clock, ClaimQueue::Bounds(), quotas};
    Pool pool;
    int made = 0;

    SharedLine() {
        pool.name = "p";
        pool.spec.max_wait = 1min;
    }
    void makeReady(int count) {
        while (count-- > 0) {
            pool::Member member;
            member.id = "sb_" + std::to_string(++made);
            member.pool = "p";
            warm.add(member);
            warm.warming(member.id);
            warm.ready(member.id, nullptr, clock.wall());
        }
        queue.offer("p");
    }
    /// Runs the claim. Returns the ids of its sandboxes; none while it waits.
    std::vector<std::string> run(const std::string& tenant, const std::shared_ptr<Claim>& claim,
                                 std::size_t count = 1) {
        const std::vector<std::string> workspaces(count, "ws_" + tenant);
        if (!claim->task) claim->task.emplace(queue.acquire(pool, {tenant}, workspaces), clock);
        std::vector<std::string> ids;
        if (!claim->task->run()) return ids;
        for (const pool::Member& member : claim->task->result()) ids.push_back(member.id);
        claim->task.reset();
        return ids;
    }
    /// Runs a claim that does not wait. Returns whether it was served.
    bool had(const std::string& tenant) {
        try {
            resultOf(queue.acquire(pool, {tenant}, {"ws_" + tenant}), clock);
            return true;
        } catch (const Error& e) {
            CHECK(e.code() == ErrorCode::PoolExhausted);
            CHECK(e.retryAfter() <= RefusedTurns::kLongestRetryAfter);
            return false;
        }
    }
};

/// A pool that keeps no line, with a tenant that claims more than there is.
struct NoLine : SharedLine {
    NoLine() { pool.spec.on_empty = OnEmpty::Fail; }
    /// Makes a sandbox ready each second; each time `tenant` claims once, behind the greedy one's
    /// three claims. Returns how many it was given.
    int rounds(int count, const std::string& tenant) {
        int served = 0;
        while (count-- > 0) {
            makeReady(1);
            for (int i = 0; i < 3; ++i) had("greedy");
            served += had(tenant) ? 1 : 0;
            clock.advance(1s);
        }
        return served;
    }
};

}  // namespace

TEST_CASE("tenants are served in proportion to their weights", "[unit][controller][quota]") {
    SharedLine q;
    q.quotas.load("heavy", {.weight = 3});
    std::vector<std::shared_ptr<Claim>> heavy;
    std::vector<std::shared_ptr<Claim>> light;
    for (int i = 0; i < 8; ++i) {
        heavy.push_back(std::make_shared<Claim>());
        light.push_back(std::make_shared<Claim>());
        REQUIRE(q.run("heavy", heavy.back()).empty());
        REQUIRE(q.run("light", light.back()).empty());
    }
    q.makeReady(8);
    const auto served = [](const auto& waits) {
        return std::count_if(waits.begin(), waits.end(), [](const auto& w) { return w->due(); });
    };
    CHECK(served(heavy) == 6);
    CHECK(served(light) == 2);
    CHECK(heavy[5]->due());  // in the order of arrival
    CHECK_FALSE(heavy[6]->due());
}

TEST_CASE("a tenant's guaranteed sandboxes are kept for it, and it comes first below them",
          "[unit][controller][quota]") {
    SharedLine q;
    q.pool.spec.max_members = 4;
    q.quotas.load("owner", {.guaranteed = {{"p", 2}}});
    q.makeReady(4);
    const auto a = std::make_shared<Claim>();
    const auto b = std::make_shared<Claim>();
    const auto c = std::make_shared<Claim>();
    CHECK(q.run("greedy", a).size() == 1);
    CHECK(q.run("greedy", b).size() == 1);
    CHECK(q.run("greedy", c).empty());  // the two ready ones are kept for the owner
    CHECK(q.warm.counts("p").ready == 2);
    const auto first = std::make_shared<Claim>();
    const auto second = std::make_shared<Claim>();
    const auto third = std::make_shared<Claim>();
    CHECK(q.run("owner", first).size() == 1);
    CHECK(q.run("owner", second).size() == 1);
    CHECK(q.warm.counts("p").claimed == 4);
    CHECK_FALSE(c->due());
    // Above its guarantee the owner waits in line like any other tenant.
    CHECK(q.run("owner", third).empty());
    CHECK_FALSE(third->due());
}

TEST_CASE("a claim of several sandboxes takes all at once and holds none while it waits",
          "[unit][controller][quota]") {
    SharedLine q;
    const auto three = std::make_shared<Claim>();
    const auto other = std::make_shared<Claim>();
    q.makeReady(2);
    CHECK(q.run("t", three, 3).empty());
    CHECK(q.warm.counts("p").ready == 2);
    CHECK(q.queue.waiting("p") == 3);
    CHECK(q.run("u", other).empty());  // waits too: else later claims would always pass the first
    q.makeReady(1);
    CHECK(q.run("t", three, 3).size() == 3);
    CHECK_FALSE(other->due());
    q.makeReady(1);
    CHECK(q.run("u", other).size() == 1);
}

TEST_CASE("a claim of more sandboxes than the pool's limit delays no other claim",
          "[unit][controller][quota]") {
    SharedLine q;
    const auto five = std::make_shared<Claim>();
    const auto other = std::make_shared<Claim>();
    const auto late = std::make_shared<Claim>();
    CHECK(q.run("t", five, 5).empty());
    CHECK(q.run("u", other).empty());
    CHECK(q.queue.needed("p") == 6);
    q.queue.limit("p", 4);
    CHECK(q.queue.waiting("p") == 6);
    CHECK(q.queue.needed("p") == 1);
    q.makeReady(3);
    CHECK(q.run("u", other).size() == 1);
    CHECK(q.run("v", late).size() == 1);  // a later claim, too
    // The large claim keeps its place: it is served if enough sandboxes become ready after all.
    q.makeReady(4);
    CHECK(q.run("t", five, 5).size() == 5);
}

TEST_CASE("two claims of several sandboxes do not deadlock, and one that leaves gives up its turn",
          "[unit][controller][quota]") {
    SharedLine q;
    auto first = std::make_shared<Claim>();
    const auto second = std::make_shared<Claim>();
    CHECK(q.run("t", first, 3).empty());
    CHECK(q.run("u", second, 3).empty());
    q.makeReady(4);
    CHECK(first->due());
    CHECK_FALSE(second->due());
    CHECK(q.warm.counts("p").claimed == 3);
    first.reset();  // hangs up before it takes them: all three go to the next claim
    CHECK(second->due());
    CHECK(q.run("u", second, 3).size() == 3);
    CHECK(q.warm.counts("p").ready == 1);
}

TEST_CASE("a claim of several sandboxes costs its tenant as many turns",
          "[unit][controller][quota]") {
    SharedLine q;
    // In front of all may be a claim that cannot be served.
    const bool blocked = GENERATE(false, true);
    const auto five = std::make_shared<Claim>();
    if (blocked) {
        CHECK(q.run("s", five, 5).empty());
        q.queue.limit("p", 4);
    }
    const auto two = std::make_shared<Claim>();
    const auto one = std::make_shared<Claim>();
    std::vector<std::shared_ptr<Claim>> others;
    CHECK(q.run("t", two, 2).empty());
    CHECK(q.run("t", one).empty());
    for (int i = 0; i < 3; ++i) {
        others.push_back(std::make_shared<Claim>());
        CHECK(q.run("u", others.back()).empty());
    }
    q.makeReady(4);
    CHECK(two->due());
    CHECK(others[0]->due());
    CHECK(others[1]->due());
    CHECK_FALSE(one->due());
    q.makeReady(1);
    CHECK(one->due());
    CHECK_FALSE(others[2]->due());
    if (blocked) CHECK_FALSE(five->due());
}

TEST_CASE("repeated claims of several sandboxes do not starve other tenants",
          "[unit][controller][quota]") {
    SharedLine q;
    const auto first = std::make_shared<Claim>();
    const auto second = std::make_shared<Claim>();
    const auto other = std::make_shared<Claim>();
    const auto late = std::make_shared<Claim>();
    const auto last = std::make_shared<Claim>();
    q.makeReady(2);
    CHECK(q.run("t", first, 3).empty());
    q.clock.advance(30s);
    CHECK(q.run("u", other).empty());  // held up from now on
    q.clock.advance(25s);
    CHECK(q.run("t", second, 3).empty());
    q.clock.advance(5s);
    CHECK(codeOf([&] { q.run("t", first, 3); }) == ErrorCode::PoolExhausted);
    CHECK(q.run("u", other).size() == 1);
    CHECK(q.run("v", late).size() == 1);  // the second claim of several lets it pass
    q.makeReady(1);
    CHECK_FALSE(second->due());
    // After as long a time as its tenant held up others, it has its turn again.
    q.clock.advance(30s);
    CHECK(q.run("w", last).empty());
    q.makeReady(2);
    CHECK(q.run("t", second, 3).size() == 3);
    CHECK_FALSE(last->due());
}

TEST_CASE("claims blocked by a claim of several sandboxes are served when it hangs up",
          "[unit][controller][quota]") {
    SharedLine q;
    auto three = std::make_shared<Claim>();
    const auto other = std::make_shared<Claim>();
    q.makeReady(2);
    CHECK(q.run("t", three, 3).empty());
    CHECK(q.run("u", other).empty());
    three.reset();
    CHECK(other->due());
}

TEST_CASE("tenants take turns in a pool that keeps no line", "[unit][controller][quota]") {
    NoLine q;
    CHECK(q.rounds(16, "modest") >= 7);
}

TEST_CASE("a guarantee holds in a pool that keeps no line", "[unit][controller][quota]") {
    NoLine q;
    q.quotas.load("owner", {.guaranteed = {{"p", 8}}});
    CHECK_FALSE(q.had("owner"));
    CHECK(q.rounds(8, "owner") == 8);   // it has less than it is guaranteed
    CHECK(q.rounds(16, "owner") >= 7);  // then it takes turns
    CHECK(q.rounds(16, "owner") <= 9);
}

TEST_CASE("a pool that keeps no line holds ready sandboxes back for a guarantee, but the last one",
          "[unit][controller][quota]") {
    NoLine q;
    q.quotas.load("owner", {.guaranteed = {{"p", 2}}});
    q.queue.desire("p", 3);
    q.makeReady(3);
    CHECK(q.had("greedy"));
    CHECK_FALSE(q.had("greedy"));
    CHECK(q.had("owner"));  // at its first attempt
    CHECK_FALSE(q.had("greedy"));
    q.makeReady(1);
    CHECK(q.had("greedy"));
    CHECK(q.had("owner"));
    q.makeReady(1);
    CHECK(q.had("greedy"));  // the owner has all that it is guaranteed

    NoLine small;
    small.quotas.load("owner", {.guaranteed = {{"p", 2}}});
    small.queue.desire("p", 1);
    small.makeReady(1);
    CHECK(small.had("greedy"));  // more is never ready
}

TEST_CASE("a tenant's turn in a pool without a line has as many claims as its weight",
          "[unit][controller][quota]") {
    NoLine q;
    q.quotas.load("greedy", {.weight = 3});
    const int modest = q.rounds(40, "modest");
    CHECK(modest >= 8);
    CHECK(modest <= 12);
}

TEST_CASE("a refused tenant that does not come again keeps its turn for seconds only",
          "[unit][controller][quota]") {
    NoLine q;
    CHECK_FALSE(q.had("gone"));
    q.makeReady(1);
    CHECK_FALSE(q.had("other"));
    q.makeReady(1);
    CHECK(q.had("other"));  // one is left to the tenant that came first
    CHECK_FALSE(q.had("other"));
    q.clock.advance(RefusedTurns::kLongestRetryAfter + 1s);
    CHECK(q.had("other"));

    // A claim under a guarantee that nobody claims blocks nobody, either.
    q.quotas.load("owner", {.guaranteed = {{"p", 1}}});
    q.makeReady(1);
    CHECK(q.had("other"));
}

TEST_CASE("a tenant that may claim no more delays no other in a pool without a line",
          "[unit][controller][quota]") {
    NoLine q;
    q.pool.spec.max_members = 3;
    q.quotas.load("owner", {.guaranteed = {{"p", 2}}});
    CHECK_FALSE(q.had("greedy"));
    q.makeReady(1);
    CHECK(q.had("greedy"));
    CHECK_FALSE(q.had("greedy"));
    q.makeReady(2);
    CHECK_FALSE(q.had("greedy"));
    CHECK(q.had("owner"));
    CHECK(q.had("owner"));
}
