#include <algorithm>

#include "controller/reconcile/PoolReconciler.h"
#include "tests/support/House.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::controller::test;
using namespace std::chrono_literals;

namespace {

bool conditionOf(const House& house, ConditionType type) {
    for (const PoolCondition& each : house.statuses.of("p").conditions) {
        if (each.type == type) return each.status;
    }
    return false;
}

/// Returns the reason why the pool is degraded, in the text for that role.
std::string reasonFor(House& house, Role role) {
    for (const PoolCondition& each :
         house.pools.get({"default", role, ""}, "p").status.conditions) {
        if (each.type == ConditionType::Degraded) return each.message;
    }
    return "";
}

}  // namespace

TEST_CASE("a pool fills to its floor with few creates at a time", "[unit][controller]") {
    Ground ground;
    House house(ground);
    PoolSpec spec = smallSpec(5);
    spec.parallel_creates = 2;
    house.declare("p", spec);
    house.pool_reconciler.reconcile("p");
    CHECK(house.warm.counts("p").creating == 2);
    house.pool_reconciler.reconcile("p");  // a second call makes nothing twice
    CHECK(house.warm.counts("p").creating == 2);
    CHECK_FALSE(conditionOf(house, ConditionType::Ready));
    CHECK(conditionOf(house, ConditionType::Progressing));
    house.loop.settle();
    CHECK(house.warm.counts("p").ready == 5);
    CHECK(ground.runtime.created() == 5);
    CHECK(conditionOf(house, ConditionType::Ready));
    CHECK(house.statuses.of("p").observed_generation == 1);
}

TEST_CASE("a pool that creates on empty makes a sandbox for each claim at once, beyond warm.max",
          "[unit][controller]") {
    for (const OnEmpty action : {OnEmpty::Queue, OnEmpty::Create}) {
        Ground ground;
        House house(ground);
        PoolSpec spec = smallSpec(0);
        spec.warm_max = 1;
        spec.parallel_creates = 4;
        spec.max_members = 3;
        spec.on_empty = action;
        house.declare("p", spec);
        house.loop.settle();
        std::vector<Stepped<WorkspaceView>> claims;
        for (int i = 0; i < 4; ++i) {
            claims.push_back(house.claiming(house.who, House::request()));
            CHECK_FALSE(claims.back().run());
        }
        house.pool_reconciler.reconcile("p");
        const std::size_t at_once = action == OnEmpty::Create ? 3 : 1;  // limited to max_members
        CHECK(house.warm.counts("p").creating == at_once);
        house.pool_reconciler.reconcile("p");
        CHECK(house.warm.counts("p").creating == at_once);
        REQUIRE(house.settleUntil([&] {
            return std::count_if(claims.begin(), claims.end(),
                                 [](auto& claim) { return claim.run(); }) == 3;
        }));
        CHECK(house.line.waiting("p") == 1);  // until one of the three ends
    }
}

TEST_CASE("a pool at its limit says so for as long as it wants more", "[unit][controller]") {
    Ground ground;
    House house(ground);
    PoolSpec spec = smallSpec(2);
    spec.max_members = 2;
    house.declare("p", spec);
    REQUIRE(house.filled("p", 2));
    CHECK_FALSE(conditionOf(house, ConditionType::ScalingLimited));
    const std::string held = house.open(house.who, House::request()).id;
    REQUIRE(house.settleUntil([&] { return conditionOf(house, ConditionType::ScalingLimited); }));
    house.workspaces.close(house.who, held);
    CHECK(house.settleUntil([&] { return !conditionOf(house, ConditionType::ScalingLimited); }));
}

TEST_CASE("a runtime that is stuck degrades its pools, which serve what they have",
          "[unit][controller]") {
    Ground ground;
    House house(ground);
    house.declare("p", smallSpec(1));
    REQUIRE(house.filled("p", 1));
    ground.runtime.setTrouble("the launcher has not answered in time (operation create)");
    house.pool_reconciler.reconcile("p");
    CHECK(reasonFor(house, Role::Operator) ==
          "the launcher has not answered in time (operation create)");
    CHECK(conditionOf(house, ConditionType::Degraded));
    CHECK_NOTHROW(house.open(house.who, House::request()));
    ground.runtime.setTrouble("");
    house.pool_reconciler.reconcile("p");
    CHECK_FALSE(conditionOf(house, ConditionType::Degraded));
}

TEST_CASE("a dead warm sandbox is replaced once", "[unit][controller]") {
    Ground ground;
    House house(ground);
    house.declare("p", smallSpec(2));
    REQUIRE(house.filled("p", 2));
    const std::string dead = ground.runtime.list().front().id;
    ground.runtime.kill(dead);
    REQUIRE(house.settleUntil(
        [&] { return !house.warm.find(dead) && house.warm.counts("p").ready == 2; }));
    ground.manual.advance(31s);
    house.loop.settle();
    CHECK(ground.runtime.created() == 3);
    CHECK(ground.runtime.list().size() == 2);
    CHECK(house.warm.counts("p").total() == 2);
}

TEST_CASE("failing creates back off, degrade the pool and recover", "[unit][controller]") {
    Ground ground;
    House house(ground);
    ground.runtime.failCreates(3);
    house.declare("p", smallSpec(1));
    house.loop.settle();
    CHECK(house.breaker.state("p").failures == 1);
    CHECK(house.warm.counts("p").total() == 0);  // nothing of the failed one is left
    house.work.add({WorkKind::Pool, "p"});
    house.loop.settle();
    CHECK(house.breaker.state("p").failures == 1);  // the retry waits
    ground.manual.advance(501ms);
    house.loop.settle();
    CHECK(house.breaker.state("p").failures == 2);
    CHECK_FALSE(conditionOf(house, ConditionType::Degraded));
    ground.manual.advance(501ms);
    house.loop.settle();
    CHECK(house.breaker.state("p").failures == 2);  // this retry waits twice as long
    ground.manual.advance(500ms);
    house.loop.settle();
    CHECK(house.breaker.state("p").failures == 3);
    CHECK(conditionOf(house, ConditionType::Degraded));
    CHECK(codeOf([&] { house.open(house.who, House::request()); }) == ErrorCode::PoolDegraded);
    CHECK(reasonFor(house, Role::Operator) == house.breaker.state("p").reason);
    CHECK(reasonFor(house, Role::User) == "only operators see the reason");
    ground.manual.advance(3s);
    house.loop.settle();
    CHECK(house.warm.counts("p").ready == 1);
    CHECK_FALSE(conditionOf(house, ConditionType::Degraded));
    EventQuery query;
    query.type = "pool.recovered";
    CHECK(house.events.list(house.who, query).size() == 1);
    query.type = "pool.degraded";
    CHECK(house.events.list(house.who, query).size() == 1);
}

TEST_CASE("a pool of a missing image degrades and others go on", "[unit][controller]") {
    Ground ground;
    House house(ground);
    PoolSpec missing = smallSpec(1);
    missing.image = "missing";
    house.declare("m", missing);
    house.declare("p", smallSpec(2));
    house.loop.settle();
    CHECK(house.warm.counts("p").ready == 2);
    CHECK(house.breaker.state("m").failures == 1);
}

TEST_CASE("a new template replaces warm sandboxes only as new ones arrive", "[unit][controller]") {
    Ground ground;
    House house(ground);
    house.declare("p", smallSpec(2));
    REQUIRE(house.filled("p", 2));
    PoolSpec changed = smallSpec(2);
    changed.image = "node";
    house.declare("p", changed);
    house.pool_reconciler.reconcile("p");
    CHECK(house.warm.counts("p").ready == 2);  // still there for claims
    REQUIRE(house.settleUntil([&] { return ground.runtime.list().size() == 2; }));
    CHECK(house.warm.counts("p").ready == 2);
    for (const pool::Member& member : house.warm.members("p")) CHECK(member.image == "node");
}

TEST_CASE("a change of numbers replaces no sandbox", "[unit][controller]") {
    Ground ground;
    House house(ground);
    house.declare("p", smallSpec(2));
    REQUIRE(house.filled("p", 2));
    house.declare("p", smallSpec(3));
    REQUIRE(house.filled("p", 3));
    CHECK(ground.runtime.created() == 3);
    house.declare("p", smallSpec(1));
    house.loop.settle();
    CHECK(house.warm.counts("p").ready == 3);  // a surplus is kept for a while
    ground.manual.advance(61s);
    house.loop.settle();
    CHECK(house.warm.counts("p").ready == 1);
    CHECK(ground.runtime.list().size() == 1);
}

TEST_CASE("warm sandboxes are renewed at their age", "[unit][controller]") {
    Ground ground;
    House house(ground);
    house.declare("p", smallSpec(2));
    REQUIRE(house.filled("p", 2));
    ground.manual.advance(25h);
    house.loop.settle();
    CHECK(house.warm.counts("p").ready == 2);
    CHECK(ground.runtime.created() == 4);
    CHECK(ground.runtime.list().size() == 2);
}

TEST_CASE("sandboxes of one age are renewed one after the other", "[unit][controller]") {
    Ground ground;
    House house(ground);
    PoolSpec spec = smallSpec(8);
    spec.max_age = 10h;
    house.declare("p", spec);
    REQUIRE(house.filled("p", 8));
    ground.manual.advance(8h + 59min);
    house.loop.settle();
    CHECK(ground.runtime.created() == 8);  // the age is reduced by a tenth at most
    std::set<std::size_t> created{8};
    while (ground.runtime.created() < 16) {
        ground.manual.advance(1min);
        house.loop.settle();
        CHECK(house.warm.counts("p").ready >= 7);
        created.insert(ground.runtime.created());
    }
    CHECK(created.size() > 3);  // at more than two moments

    // All are too old at once, as after a suspend. Still, at most one is missing.
    ground.manual.advance(11h);
    for (int i = 0; i < 1'000 && ground.runtime.created() < 24; ++i) {
        house.pool_reconciler.reconcile("p");
        const pool::PoolCounts counts = house.warm.counts("p");
        REQUIRE(counts.ready + 1 >= 8);
        house.loop.settle();
    }
    CHECK(house.filled("p", 8));
    CHECK(ground.runtime.created() == 24);
}

TEST_CASE("a deleted pool loses its warm sandboxes and goes when the last claimed one ends",
          "[unit][controller]") {
    Ground ground;
    House house(ground);
    house.declare("p", smallSpec(2));
    REQUIRE(house.filled("p", 2));
    const WorkspaceView view = house.open(house.who, House::request());
    house.specs.markDeleting("p");
    house.work.add({WorkKind::Pool, "p"});
    house.loop.settle();
    CHECK(ground.runtime.list().size() == 1);
    REQUIRE(house.specs.find("p"));
    CHECK(house.workspaces.get(house.who, view.id).phase == WorkspacePhase::Active);
    CHECK(codeOf([&] { house.open(house.who, House::request()); }) != std::nullopt);
    house.workspaces.close(house.who, view.id);
    house.loop.settle();
    CHECK_FALSE(house.specs.find("p"));
    CHECK(ground.runtime.list().empty());
    CHECK(house.metrics.render().find("pool=\"p\"") == std::string::npos);
}

TEST_CASE("the members of a pool never exceed its limit", "[unit][controller]") {
    Ground ground;
    House house(ground);
    PoolSpec spec = smallSpec(4);
    spec.max_members = 3;
    house.declare("p", spec);
    house.loop.settle();
    CHECK(house.warm.counts("p").total() == 3);
}

TEST_CASE("a claim of a drained server gets that reason instead of a request to retry",
          "[unit][controller]") {
    Ground ground;
    House house(ground);
    house.declare("p", smallSpec(1));
    REQUIRE(house.filled("p", 1));
    house.pool_reconciler.drain();
    const Error error = errorOf([&] { house.open(house.who, House::request()); });
    CHECK(error.code() == ErrorCode::Unavailable);
    CHECK(std::string(error.what()).find("drained") != std::string::npos);
    CHECK_FALSE(error.passes());
    house.loop.settle();
    const PoolStatus status = house.statuses.of("p");
    const auto ready = std::find_if(
        status.conditions.begin(), status.conditions.end(),
        [](const PoolCondition& condition) { return condition.type == ConditionType::Ready; });
    REQUIRE(ready != status.conditions.end());
    CHECK_FALSE(ready->status);
    CHECK(ready->reason == "Drained");
}

TEST_CASE("a drained server is undrained, but not one that is being shut down",
          "[unit][controller]") {
    Ground ground;
    House house(ground);
    house.declare("p", smallSpec(2));
    REQUIRE(house.filled("p", 2));
    house.pool_reconciler.undrain();  // nothing was drained
    house.pool_reconciler.drain();
    for (const pool::Member& member : house.warm.all()) {
        house.terminator.retire(member, EndReason::Drain);
    }
    REQUIRE(house.settleUntil([&] { return house.warm.counts("p").total() == 0; }));
    ground.manual.advance(1min);
    house.loop.settle();
    CHECK(house.warm.counts("p").total() == 0);
    CHECK_THROWS_AS(house.open(house.who, House::request()), Error);
    CHECK_THROWS_AS(house.pools.undrainAll({"t", Role::Operator, ""}), Error);
    CHECK(house.pool_reconciler.drained());
    house.pools.undrainAll(house.who);
    REQUIRE(house.filled("p", 2));
    CHECK_NOTHROW(house.open(house.who, House::request()));
    CHECK(house.logged("server.undrained").size() == 1);
    CHECK(house.statuses.of("p").conditions.front().reason != "Drained");

    house.pool_reconciler.shutDown();
    house.pool_reconciler.drain();
    house.pool_reconciler.undrain();
    CHECK(house.pool_reconciler.drained());
}

TEST_CASE("a pool whose stored spec is refused is Degraded, says why and makes nothing",
          "[unit][controller]") {
    Ground ground;
    House house(ground);
    Pool pool = poolNamed("p", smallSpec(2));
    pool.refused = "it names a tag";
    bool created = false;
    house.specs.put(pool, SpecStore::Mode::Create, {}, created);
    house.work.add({WorkKind::Pool, "p"});
    house.loop.settle();
    CHECK(house.warm.all().empty());
    const PoolStatus status = house.statuses.of("p");
    const auto told =
        std::find_if(status.conditions.begin(), status.conditions.end(),
                     [](const PoolCondition& c) { return c.type == ConditionType::Degraded; });
    REQUIRE(told != status.conditions.end());
    CHECK(told->status);
    CHECK(told->reason == "SpecRefused");
    CHECK(told->message == "it names a tag");
    CHECK(codeOf([&] { house.open(house.who, House::request()); }) == ErrorCode::PoolDegraded);
}

TEST_CASE("all pools together promise no more disk than there is", "[unit][controller]") {
    Ground ground;
    ground.disk = DiskSpace{100 * kMiB, 100 * kMiB};
    House house(ground);
    PoolSpec spec = smallSpec(2);
    spec.limits.workspace_bytes = 30 * kMiB;
    spec.max_wait = 10ms;
    house.declare("p", spec);
    REQUIRE(house.filled("p", 2));
    house.declare("q", spec);
    REQUIRE(house.filled("q", 1));
    house.loop.settle();
    CHECK(house.warm.counts("q").total() == 1);
    CHECK(house.warm.promisedDisk() == 90 * kMiB);
    const auto degraded = [&](const std::string& pool) -> std::string {
        for (const PoolCondition& each : house.statuses.of(pool).conditions) {
            if (each.type == ConditionType::Degraded && each.status)
                return each.reason + ": " + each.message;
        }
        return "";
    };
    CHECK(degraded("q") ==
          "DiskFull: a workspace of 30Mi does not fit: 90Mi of the disk's 100Mi are promised "
          "(100Mi less a reserve of 0, times 1)");
    CHECK(degraded("p").empty());
    CHECK(house.metrics.render().find("\nhearth_workspace_disk_promised_bytes 94371840\n") !=
          std::string::npos);
    // The existing sandboxes serve. A claim that finds none gets the reason.
    WorkspaceRequest request = House::request();
    request.pool = "q";
    const std::string last = house.open(house.who, request).id;
    CHECK(codeOf([&] { house.open(house.who, request); }) == ErrorCode::DiskFull);
    // Workspaces in memory need no disk.
    PoolSpec memory = spec;
    memory.storage = pool::Storage::Memory;
    house.declare("m", memory);
    REQUIRE(house.filled("m", 2));
    // The end of one workspace makes room for the next, and the pool is full again.
    PoolSpec fewer = spec;
    fewer.warm_min = 1;
    house.workspaces.close(house.who, last);
    house.declare("q", fewer);
    REQUIRE(house.settleUntil([&] {
        ground.manual.advance(1s);
        return house.warm.counts("q").ready == 1 && degraded("q").empty();
    }));
}

TEST_CASE("no sandbox is made where it would take the disk's last room", "[unit][controller]") {
    Ground ground;
    ground.disk = DiskSpace{1000 * kMiB, 10 * kMiB};
    House house(ground);
    house.declare("p", smallSpec(1));
    REQUIRE(house.settleUntil([&] { return conditionOf(house, ConditionType::Degraded); }));
    CHECK(house.warm.counts("p").total() == 0);
    CHECK(codeOf([&] { house.open(house.who, House::request()); }) == ErrorCode::DiskFull);
    ground.disk->free = 900 * kMiB;
    REQUIRE(house.settleUntil([&] {
        ground.manual.advance(1s);
        return house.warm.counts("p").ready == 1 && !conditionOf(house, ConditionType::Degraded);
    }));
}

TEST_CASE("adopted sandboxes count in the promised disk space", "[unit][controller]") {
    Ground ground;
    const std::uint64_t each = smallSpec().limits.workspace_bytes;
    {
        House house(ground);
        house.declare("p", smallSpec(2));
        REQUIRE(house.filled("p", 2));
        house.open(house.who, House::request());
        REQUIRE(house.filled("p", 2));
    }
    House house(ground);
    house.recover();
    CHECK(house.warm.promisedDisk() == 3 * each);
}

TEST_CASE("a predictive pool follows its claims between floor and ceiling, and says so",
          "[unit][controller]") {
    Ground ground;
    House house(ground);
    PoolSpec spec = smallSpec(1);
    spec.sizing = SizingMode::Predictive;
    spec.warm_max = 6;
    house.declare("p", spec);
    REQUIRE(house.filled("p", 1));
    for (int i = 0; i < 100; ++i) house.forecasts.started("p", 3s);
    std::size_t most = 0;
    for (int i = 0; i < 40; ++i) {
        const Pool& pool = *house.specs.find("p");
        const pool::Member member =
            resultOf(house.line.acquire(pool, {"t"}, {"ws"}), house.clock).front();
        REQUIRE(house.warm.drain(member.id));
        house.warm.remove(member.id);
        house.work.add({WorkKind::Pool, "p"});
        house.loop.settle();
        most = std::max<std::size_t>(most, house.statuses.of("p").desired);
        ground.manual.advance(500ms);
    }
    CHECK(most > 1);
    CHECK(most <= 6);
    const PoolStatus busy = house.statuses.of("p");
    CHECK(busy.forecast.claims_per_second > 0.2);
    CHECK(busy.forecast.start_seconds > 1);
    for (int i = 0; i < 400; ++i) {
        ground.manual.advance(600s);
        house.loop.settle();
    }
    CHECK(house.statuses.of("p").desired == 1);
    CHECK(house.warm.counts("p").ready == 1);
}
