#include <algorithm>
#include <atomic>
#include <thread>

#include "tests/support/House.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::controller::test;
using namespace std::chrono_literals;

namespace {

OnDemandRules allowing(std::vector<std::string> patterns) {
    OnDemandRules rules;
    rules.allow = ImageAllowList(patterns);
    rules.keep = 60s;
    return rules;
}

WorkspaceRequest wanting(const House& house, const std::string& image) {
    WorkspaceRequest request = House::request();
    request.image = image;
    request.started_at = house.clock.now();
    return request;
}

/// Opens a workspace on another thread while the calling thread runs the loop.
WorkspaceView openIn(House& house, const std::string& image, const ClaimLimits& limits = {}) {
    std::optional<WorkspaceView> view;
    std::exception_ptr failure;
    std::atomic<bool> done{false};
    WorkspaceRequest request = wanting(house, image);
    request.limits = limits;
    house.ground.manual.advance(1ms);
    std::jthread client([&] {
        try {
            view = house.open(house.who, request);
        } catch (const Error&) {
            failure = std::current_exception();
        }
        done = true;
    });
    REQUIRE(house.settleUntil([&] { return done.load(); }));
    if (failure) std::rethrow_exception(failure);
    return *view;
}

void endAll(House& house) {
    for (const auto& workspace : house.table.all()) {
        house.workspaces.close(house.who, workspace->facts().id);
    }
    REQUIRE(house.settleUntil([&] { return house.warm.all().empty(); }));
}

}  // namespace

TEST_CASE("an image in the store without a pool becomes a cold workspace with its stages",
          "[unit][controller]") {
    Ground ground;
    House house(ground, allowing({"tool:*"}));
    PoolSpec spec = smallSpec(0);
    spec.limits.pids = 77;
    house.declare("p", spec);
    const WorkspaceView view = openIn(house, "tool:1");
    REQUIRE(view.claim);
    CHECK(view.claim->source == ClaimSource::Cold);
    CHECK(view.claim->pull_ms == 0);
    CHECK(view.pool.starts_with("ondemand-"));
    CHECK(view.limits.pids == 77);  // like the default pool
    const Error more = errorOf([&] { openIn(house, "tool:1", {.pids = 78}); });
    CHECK(more.code() == ErrorCode::InvalidSpec);
    CHECK(more.fields().front().pointer == "/limits/pids");
    CHECK(openIn(house, "tool:1", {.pids = 70}).limits.pids == 70);
    const PoolPtr pool = house.specs.find(view.pool);
    REQUIRE(pool);
    CHECK(pool->on_demand == "tool:1");
    CHECK(pool->spec.warm_min == 0);
    CHECK(ground.runtime.fetches() == 0);
    endAll(house);
}

TEST_CASE("only operators see the images that other tenants run", "[unit][controller]") {
    Ground ground;
    House house(ground, allowing({"tool:*"}));
    house.declare("p", smallSpec(0));
    const std::string pool = openIn(house, "tool:1").pool;
    PoolService& pools = house.pools;
    const auto seen_by = [&](const Principal& who) { return pools.list(who).size(); };
    const Principal mine{"default", Role::User, ""};
    const Principal other{"other", Role::User, ""};
    CHECK(seen_by(mine) == 2);
    CHECK(pools.get(mine, pool).pool->name == pool);
    CHECK(seen_by(other) == 1);
    const Principal owner = house.who;  // restored below, to end its workspaces
    house.who = {"other", Role::User, ""};
    CHECK(openIn(house, "tool:2").pool != pool);
    CHECK(seen_by(other) == 2);
    WorkspaceRequest named = House::request();
    named.pool = pool;
    CHECK_THROWS_AS(house.open(house.who, named), Error);
    CHECK_THROWS_AS(pools.get(other, pool), Error);
    CHECK(seen_by({"other", Role::Operator, ""}) == 3);
    for (const auto& workspace : house.table.all()) {
        if (workspace->facts().tenant == "other") {
            house.workspaces.close(house.who, workspace->facts().id);
        }
    }
    house.who = owner;
    endAll(house);
    CHECK(seen_by(mine) == 1);
}

TEST_CASE("a request without an image never gets a pool that was made for claims",
          "[unit][controller]") {
    Ground ground;
    House house(ground, allowing({"tool:*"}));
    openIn(house, "tool:1");
    const Error error = errorOf([&] { house.open(house.who, House::request()); });
    CHECK(error.code() == ErrorCode::NotFound);
    CHECK(std::string(error.what()) == "the default pool p is not declared");
    CHECK(error.hint().starts_with("no pool is"));  // a pool made for claims is not named
    endAll(house);
}

TEST_CASE("a claim moves to the next pool when its pool turns out to lack its language",
          "[unit][controller]") {
    Ground ground;
    House house(ground);
    PoolSpec plain = smallSpec(0);
    plain.image = "plain";
    plain.warm_max = 2;
    house.declare("p", plain);  // the default pool; its languages are not known yet
    house.declare("q", smallSpec(1));
    REQUIRE(house.filled("q", 1));
    const auto open = [&](const std::string& language, const std::string& image) {
        WorkspaceRequest request = image.empty() ? House::request() : wanting(house, image);
        request.language = language;
        std::string pool;
        std::exception_ptr failure;
        std::atomic<bool> done{false};
        std::jthread client([&] {
            try {
                pool = house.open(house.who, request).pool;
            } catch (const Error&) {
                failure = std::current_exception();
            }
            done = true;
        });
        REQUIRE(house.settleUntil([&] { return done.load(); }));
        if (failure) std::rethrow_exception(failure);
        return pool;
    };
    CHECK(open("python", "") == "q");
    CHECK(open("bash", "") == "p");
    CHECK(codeOf([&] { open("klingon", ""); }) == ErrorCode::InvalidSpec);
    CHECK(codeOf([&] { open("python", "plain"); }) == ErrorCode::InvalidSpec);
    CHECK(house.table.all().size() == 2);
}

TEST_CASE("a missing image is fetched once for all simultaneous claims", "[unit][controller]") {
    Ground ground;
    House house(ground, allowing({"far:*"}));
    ground.runtime.holdFetches();
    house.loop.start();
    std::atomic<int> opened{0};
    std::atomic<int> pulled{0};  // claims that came before the image was there
    std::vector<std::jthread> clients;
    for (int i = 0; i < 6; ++i) {
        clients.emplace_back([&, i] {
            const WorkspaceView view = house.open(
                house.who, wanting(house, i % 2 == 0 ? "far:1" : "docker.io/library/far:1"));
            ++opened;
            if (view.claim && view.claim->pull_ms > 0) ++pulled;
        });
    }
    REQUIRE(eventually([&] { return ground.runtime.fetches() == 1; }));
    ground.runtime.letFetch();
    clients.clear();
    CHECK(opened == 6);
    CHECK(pulled >= 1);
    CHECK(ground.runtime.fetches() == 1);
    house.loop.stop();
}

TEST_CASE("an image outside the allow-list is refused with the list, and no registry is asked",
          "[unit][controller]") {
    Ground ground;
    {
        House house(ground, allowing({"tool:*", "team/*@sha256:*"}));
        house.declare("p", smallSpec(0));
        const Error error = errorOf([&] { house.open(house.who, wanting(house, "far:1")); });
        CHECK(error.code() == ErrorCode::InvalidSpec);
        CHECK(error.hint().find("tool:*, team/*@sha256:*") != std::string::npos);
        CHECK(error.hint().find("python (pool p)") != std::string::npos);
    }
    House off(ground);
    const Error error = errorOf([&] { off.open(off.who, wanting(off, "tool:1")); });
    CHECK(error.code() == ErrorCode::InvalidSpec);
    CHECK(ground.runtime.fetches() == 0);
}

TEST_CASE("a registry without the image is reported as such, and not asked again at once",
          "[unit][controller]") {
    Ground ground;
    House house(ground, allowing({"missing:*"}));
    for (int i = 0; i < 2; ++i) {
        const Error error = errorOf([&] { openIn(house, "missing:1"); });
        CHECK(error.code() == ErrorCode::InvalidSpec);
        CHECK(std::string(error.what()).find("the registry has no missing:1") != std::string::npos);
    }
    CHECK(ground.runtime.fetches() == 1);
    ground.manual.advance(6s);
    CHECK(errorOf([&] { openIn(house, "missing:1"); }).code() == ErrorCode::InvalidSpec);
    CHECK(ground.runtime.fetches() == 2);
}

TEST_CASE("an unused pool goes with its fetched image, and a used one stays",
          "[unit][controller]") {
    Ground ground;
    House house(ground, allowing({"far:*", "tool:*"}));
    const std::string pool = openIn(house, "far:1").pool;
    ground.manual.advance(120s);
    house.on_demand.collect();
    house.loop.settle();
    REQUIRE(house.specs.find(pool));  // its workspace is open
    CHECK(ground.runtime.fetched().size() == 1);
    endAll(house);
    ground.manual.advance(30s);
    house.on_demand.collect();
    CHECK_FALSE(house.specs.find(pool)->deleting);
    ground.manual.advance(31s);
    house.on_demand.collect();
    house.loop.settle();
    CHECK_FALSE(house.specs.find(pool));
    CHECK(ground.runtime.fetched().empty());
    CHECK(openIn(house, "far:1").pool == pool);  // the same pool may come back
    CHECK(ground.runtime.fetches() == 2);
    endAll(house);
}

TEST_CASE("claims for images, one after the other, do not stop the collection of unused ones",
          "[unit][controller]") {
    Ground ground;
    House house(ground, allowing({"far:*"}));
    const std::string unused = openIn(house, "far:0").pool;
    endAll(house);
    ground.manual.advance(61s);
    ground.runtime.holdFetches();
    house.loop.start();
    const auto claim = [&](const std::string& image) {
        return std::jthread([&house, request = wanting(house, image)] {
            codeOf([&] { house.open(house.who, request); });
        });
    };
    const std::jthread first = claim("far:1");
    REQUIRE(eventually([&] { return ground.runtime.fetches() == 2; }));
    CHECK(house.on_demand.collect().again == std::optional<std::chrono::nanoseconds>(1s));
    const std::size_t known = house.on_demand.remembered();
    const std::jthread second = claim("far:2");
    REQUIRE(eventually([&] { return house.on_demand.remembered() > known; }));
    ground.runtime.letFetch();
    REQUIRE(eventually([&] { return house.on_demand.collect().again.value() > 1s; }));
    CHECK(ground.runtime.fetches() == 2);                // far:2 waited for the collection
    const PoolPtr collected = house.specs.find(unused);  // its reconciler removes it meanwhile
    CHECK((!collected || collected->deleting));
    REQUIRE(eventually([&] {
        ground.manual.advance(200ms);
        return ground.runtime.fetches() >= 3;  // more if minutes pass in this loop
    }));
    house.on_demand.stop();
    house.line.setGate(ClaimQueue::Gate::Closed, Error(ErrorCode::Unavailable, "over"));
    house.loop.stop();
}

TEST_CASE("pools made for claims share one quota and one number of sandboxes",
          "[unit][controller]") {
    Ground ground;
    OnDemandRules rules = allowing({"tool:*"});
    rules.max_sandboxes = 2;
    House house(ground, std::move(rules));
    PoolSpec spec = smallSpec(0);
    spec.per_tenant = 3;
    house.declare("p", spec);
    openIn(house, "tool:1");
    openIn(house, "tool:2");
    // The third waits until one of the others ends.
    std::atomic<bool> done{false};
    std::jthread client([&] {
        house.open(house.who, wanting(house, "tool:3"));
        done = true;
    });
    REQUIRE(house.settleUntil([&] {
        const auto all = house.specs.all();
        return std::any_of(all.begin(), all.end(), [&](const PoolPtr& pool) {
            return house.line.waiting(pool->name) == 1;
        });
    }));
    house.loop.settle();
    CHECK(house.warm.all().size() == 2);
    CHECK_FALSE(done);
    house.workspaces.close(house.who, house.table.all().front()->facts().id);
    REQUIRE(house.settleUntil([&] {
        ground.manual.advance(100ms);
        return done.load();
    }));
    client.join();
    CHECK(house.warm.all().size() == 2);
    const auto held = house.table.reserve("default", "ondemand-000000000000", 3);
    CHECK(codeOf([&] { openIn(house, "tool:1"); }) == ErrorCode::QuotaExceeded);
    endAll(house);
}

TEST_CASE("a pool made for claims and its workspace survive a crash", "[unit][controller]") {
    Ground ground;
    std::string workspace;
    std::string pool;
    {
        House house(ground, allowing({"far:*"}));
        const WorkspaceView view = openIn(house, "far:1");
        workspace = view.id;
        pool = view.pool;
    }
    House house(ground, allowing({"far:*"}));
    CHECK(house.recover().workspaces == 1);
    CHECK(house.workspaces.get(house.who, workspace).pool == pool);
    REQUIRE(house.specs.find(pool));
    CHECK(house.specs.find(pool)->on_demand == "far:1");
    CHECK(openIn(house, "far:1").pool == pool);
    CHECK(ground.runtime.fetches() == 1);
    endAll(house);
}

TEST_CASE("an image that is no longer allowed loses its pool once the pool is unused",
          "[unit][controller]") {
    Ground ground;
    std::string pool;
    {
        House house(ground, allowing({"far:*"}));
        pool = openIn(house, "far:1").pool;
        endAll(house);
    }
    House house(ground);
    house.recover();
    house.on_demand.collect();
    house.loop.settle();
    CHECK_FALSE(house.specs.find(pool));
    CHECK(ground.runtime.fetched().empty());
}

TEST_CASE("a server that stops refuses claims that wait for an image", "[unit][controller]") {
    Ground ground;
    House house(ground, allowing({"far:*"}));
    ground.runtime.holdFetches();
    house.loop.start();
    std::optional<ErrorCode> code;
    std::jthread client(
        [&] { code = codeOf([&] { house.open(house.who, wanting(house, "far:1")); }); });
    REQUIRE(eventually([&] { return ground.runtime.fetches() == 1; }));
    house.on_demand.stop();
    client.join();
    CHECK(code == ErrorCode::Unavailable);
    house.loop.stop();
}

TEST_CASE("a cancelled claim does not wait for its image", "[unit][controller]") {
    Ground ground;
    House house(ground, allowing({"far:*"}));
    ground.runtime.holdFetches();
    house.loop.start();
    {
        auto claim = house.claiming(house.who, wanting(house, "far:1"));
        CHECK_FALSE(claim.run());
        CHECK(claim.wait()->progress()->what_for == "image far:1");
        REQUIRE(eventually([&] { return ground.runtime.fetches() == 1; }));
    }  // while the image is still being fetched
    ground.runtime.letFetch();
    house.loop.stop();
}

TEST_CASE("a tenant that asks for many images leaves places and turns for another's",
          "[unit][controller]") {
    Ground ground;
    House house(ground, allowing({"far:*"}));
    ground.runtime.holdFetches();
    house.loop.start();
    std::vector<Stepped<WorkspaceView>> claims;
    const auto waitsFor = [&](const std::string& tenant, const std::string& image) {
        claims.push_back(house.claiming({tenant, Role::User, ""}, wanting(house, image)));
        if (!claims.back().run()) return true;
        CHECK(codeOf([&] { claims.back().result(); }) == ErrorCode::Unavailable);
        claims.pop_back();
        return false;
    };
    int waiting = 0;
    for (int i = 0; i < 40; ++i) waiting += waitsFor("greedy", "far:" + std::to_string(i));
    CHECK(waiting == 16);
    REQUIRE(eventually([&] { return ground.runtime.fetches() == 2; }));
    // Both tenants wait for this image. The first of them to have a turn fetches it.
    CHECK(waitsFor("modest", "far:15"));
    CHECK(eventually([&] { return ground.runtime.fetches() == 3; }));
    CHECK(waitsFor("modest", "far:other"));
    CHECK(waitsFor("third", "far:third"));
    ground.runtime.letFetch();
    CHECK(eventually([&] { return ground.runtime.fetches() == 18; }));
    for (const auto& claim : claims) CHECK(eventually([&] { return claim.due(); }));
    house.loop.stop();
}

TEST_CASE("names of images and pools that have gone are forgotten", "[unit][controller]") {
    Ground ground;
    House house(ground, allowing({"far:*"}));
    house.declare("p", smallSpec(0));
    std::string last;
    for (int i = 0; i < 5; ++i) {
        const WorkspaceView view = openIn(house, "far:" + std::to_string(i));
        endAll(house);
        // One pool goes because it is deleted, the others because they are unused.
        if (i == 0) {
            house.specs.markDeleting(view.pool);
            house.work.add({WorkKind::Pool, view.pool});
        }
        last = view.pool;
    }
    CHECK(house.on_demand.remembered() > 0);
    house.loop.settle();
    ground.manual.advance(61s);
    house.on_demand.collect();
    house.on_demand.collect();
    house.loop.settle();
    REQUIRE_FALSE(house.specs.find(last));
    house.metrics.sandboxFailure(last, "lost");  // a sandbox whose end is reported late
    ground.manual.advance(61s);
    house.loop.settle();
    CHECK(house.on_demand.remembered() == 0);
    CHECK(house.metrics.render().find("pool=\"" + std::string(kOnDemandPrefix)) ==
          std::string::npos);
}
