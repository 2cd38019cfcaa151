#include <algorithm>

#include "controller/spec/TemplateHash.h"
#include "tests/support/House.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::controller::test;
using namespace std::chrono_literals;

namespace {

PoolSpec withPackages(std::vector<std::string> packages, std::uint32_t min = 1) {
    PoolSpec spec = smallSpec(min);
    spec.prewarm_packages = std::move(packages);
    return spec;
}

PoolCondition prewarmed(const House& house, const std::string& pool = "p") {
    for (const PoolCondition& each : house.statuses.of(pool).conditions) {
        if (each.type == ConditionType::Prewarmed) return each;
    }
    return {};
}

/// Returns the layers that the runtime's sandboxes were made with.
std::vector<std::string> mounted(Ground& ground) {
    std::vector<std::string> digests;
    for (const pool::SandboxInfo& info : ground.runtime.list()) {
        const auto label = info.labels.find(kLayerLabel);
        digests.push_back(label == info.labels.end() ? "" : label->second);
    }
    return digests;
}

}  // namespace

TEST_CASE("a pool's packages are installed once, before its sandboxes are made",
          "[unit][controller]") {
    Ground ground;
    House house{ground};
    house.declare("p", withPackages({"numpy==1.0", "pandas"}, 2));
    house.pool_reconciler.reconcile("p");
    CHECK(house.warm.counts("p").total() == 0);
    CHECK(prewarmed(house).reason == "InstallingPackages");
    REQUIRE(house.filled("p", 2));
    CHECK(ground.packages.builds == 1);
    CHECK(ground.runtime.layers().size() == 1);
    CHECK(mounted(ground) == std::vector<std::string>(2, ground.runtime.layers().front()));
    house.pool_reconciler.reconcile("p");
    CHECK(prewarmed(house).status);
    const PoolStatus status = house.statuses.of("p");
    REQUIRE(status.packages);
    CHECK(status.packages->digest == ground.runtime.layers().front());
    CHECK(status.packages->installed ==
          std::vector<LockedPackage>{{"numpy", "1.0"}, {"pandas", "1.0"}});
}

TEST_CASE("pools that list the same packages differently share a layer", "[unit][controller]") {
    Ground ground;
    House house{ground};
    house.declare("p", withPackages({"a", "b"}));
    house.declare("q", withPackages({"b", "a", "b"}));
    house.declare("r", withPackages({"a==1.0", "b"}));
    REQUIRE(house.filled("p", 1));
    REQUIRE(house.filled("q", 1));
    REQUIRE(house.filled("r", 1));
    CHECK(ground.packages.builds == 2);  // r was resolved, too
    CHECK(ground.runtime.layers().size() == 1);
}

TEST_CASE("a restart resolves nothing and keeps the warm sandboxes", "[unit][controller]") {
    Ground ground;
    auto house = std::make_unique<House>(ground);
    house->declare("p", withPackages({"a"}));
    REQUIRE(house->filled("p", 1));
    house.reset();
    ground.packages.version = "2.0";  // the index has moved on
    house = std::make_unique<House>(ground);
    CHECK(house->recover().warm == 1);
    house->loop.settle();
    CHECK(ground.packages.builds == 1);
    CHECK(ground.runtime.created() == 1);
    CHECK(house->warm.counts("p").ready == 1);
    CHECK(prewarmed(*house).status);
}

TEST_CASE("a layer that was lost is made again from its lock", "[unit][controller]") {
    Ground ground;
    House house{ground};
    house.declare("p", withPackages({"a"}));
    REQUIRE(house.filled("p", 1));
    const std::string digest = ground.runtime.layers().front();
    ground.packages.version = "2.0";
    ground.runtime.removeLayer(digest);
    house.work.add({WorkKind::Layers, "all"});
    house.loop.settle();
    CHECK(ground.packages.resolved == 1);
    CHECK(ground.packages.builds == 2);
    CHECK(ground.runtime.layers() == std::vector<std::string>{digest});
}

TEST_CASE("other packages replace the warm sandboxes once they are installed",
          "[unit][controller]") {
    Ground ground;
    House house{ground};
    house.declare("p", withPackages({"a"}));
    REQUIRE(house.filled("p", 1));
    const std::string first = ground.runtime.list().front().id;
    ground.packages.failure = "the index is unreachable";
    house.declare("p", withPackages({"a", "b"}));
    house.loop.settle();
    CHECK(prewarmed(house).reason == "PackagesFailed");
    CHECK(house.warm.find(first));  // it serves meanwhile
    ground.packages.failure.clear();
    ground.manual.advance(11s);
    REQUIRE(house.settleUntil(
        [&] { return !house.warm.find(first) && house.warm.counts("p").ready == 1; }));
    CHECK(ground.runtime.layers().size() == 2);
}

TEST_CASE("unavailable packages degrade the pool with a message, and are tried again",
          "[unit][controller]") {
    Ground ground;
    House house{ground};
    house.declare("p", withPackages({"missing-one"}));
    house.loop.settle();
    CHECK(prewarmed(house).message == "no missing-one");
    CHECK(ground.packages.builds == 1);
    CHECK(house.breaker.state("p").degraded());  // at the first failure: nothing can be made
    const Error told = errorOf([&] { house.open(house.who, House::request()); });
    CHECK(told.code() == ErrorCode::PoolDegraded);
    CHECK(std::string(told.what()).find("no missing-one") != std::string::npos);
    house.work.add({WorkKind::Pool, "p"});
    house.loop.settle();
    CHECK(ground.packages.builds == 1);  // the retry waits
    ground.manual.advance(10s);
    house.loop.settle();
    CHECK(ground.packages.builds == 2);
    ground.manual.advance(20s);
    house.loop.settle();
    CHECK(house.breaker.state("p").degraded());
    CHECK(codeOf([&] { house.open(house.who, House::request()); }) == ErrorCode::PoolDegraded);
    CHECK(house.warm.counts("p").total() == 0);
    house.declare("p", withPackages({"there"}));
    REQUIRE(house.filled("p", 1));
    CHECK(prewarmed(house).status);
    CHECK_FALSE(house.breaker.state("p").degraded());
}

TEST_CASE("a pool that drops its packages is no longer degraded by them", "[unit][controller]") {
    Ground ground;
    House house{ground};
    house.declare("p", withPackages({"missing-one"}));
    house.loop.settle();
    REQUIRE(house.breaker.state("p").degraded());
    house.declare("p", smallSpec(1));
    REQUIRE(house.filled("p", 1));
    CHECK_FALSE(house.breaker.state("p").degraded());
}

TEST_CASE("a lock that was removed is resolved anew while the old one serves",
          "[unit][controller]") {
    Ground ground;
    House house{ground};
    house.declare("p", withPackages({"a"}));
    REQUIRE(house.filled("p", 1));
    const std::string before = mounted(ground).front();
    const std::string file = house.statuses.of("p").packages->lock;
    ground.packages.version = "2.0";
    ground.packages.failure = "the index is unreachable";
    std::filesystem::remove(ground.dir.file("layers") + "/" + file);
    house.work.add({WorkKind::Layers, "all"});
    house.loop.settle();
    CHECK(prewarmed(house).status);
    CHECK(prewarmed(house).message.find("unreachable") != std::string::npos);
    CHECK(mounted(ground) == std::vector<std::string>{before});
    ground.packages.failure.clear();
    ground.manual.advance(11s);
    REQUIRE(house.settleUntil([&] {
        const auto now = mounted(ground);
        return now.size() == 1 && now.front() != before;
    }));
    CHECK(house.statuses.of("p").packages->installed.front().version == "2.0");
}

TEST_CASE("a layer goes an hour after the last pool and the last sandbox that had it",
          "[unit][controller]") {
    Ground ground;
    House house{ground};
    house.declare("p", withPackages({"a"}));
    REQUIRE(house.filled("p", 1));
    const auto collect = [&] {
        house.work.add({WorkKind::Layers, "all"});
        house.loop.settle();
    };
    ground.manual.advance(2h);
    collect();
    ground.manual.advance(2h);
    collect();
    CHECK(ground.runtime.layers().size() == 1);  // a pool needs it

    const WorkspaceView view = house.open(house.who, House::request());
    house.specs.markDeleting("p");
    house.work.add({WorkKind::Pool, "p"});
    house.loop.settle();
    ground.manual.advance(2h);
    collect();
    ground.manual.advance(2h);
    collect();
    CHECK(ground.runtime.layers().size() == 1);  // a sandbox uses it

    house.workspaces.close(house.who, view.id);
    REQUIRE(house.settleUntil([&] { return ground.runtime.list().empty(); }));
    collect();
    CHECK(ground.runtime.layers().size() == 1);
    ground.manual.advance(61min);
    collect();
    CHECK(ground.runtime.layers().empty());
    CHECK(LayerLocks(ground.dir.file("layers")).all().empty());
}

TEST_CASE("packages leave the template of pools without any as it was", "[unit][controller]") {
    const PoolSpec spec = smallSpec(1);
    CHECK(templateHash(spec, "") != templateHash(spec, "sha256:x"));
    PoolSpec more = spec;
    more.prewarm_packages = {"a"};
    CHECK(templateHash(more, "sha256:x") == templateHash(spec, "sha256:x"));
}
