#include <catch2/catch.hpp>
#include <set>

#include "controller/reconcile/ReadyProbe.h"
#include "tests/support/House.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::controller::test;
using namespace std::chrono_literals;

namespace {

struct Probed {
    Probed() {
        house.declare("p", smallSpec(1));
        REQUIRE(house.filled("p", 1));
    }
    pool::SandboxId ready() const { return house.warm.members("p").front().id; }

    Ground ground;
    House house{ground};
    ReadyProbe probe{house.warm, house.terminator, house.work, house.history, 20ms};
};

}  // namespace

TEST_CASE("a ready sandbox that does not answer three times in a row is replaced",
          "[unit][controller]") {
    Probed p;
    const pool::SandboxId id = p.ready();
    p.ground.runtime.hang(id);
    CHECK(p.probe.probe(id).again == 5s);
    CHECK(p.probe.probe(id).again == 5s);
    CHECK(p.house.warm.find(id)->phase == pool::Phase::Ready);
    CHECK_FALSE(p.probe.probe(id).again);
    CHECK(p.house.logged("sandbox.silent").size() == 1);
    REQUIRE(p.house.settleUntil([&] { return !p.house.warm.find(id); }));
    REQUIRE(p.house.filled("p", 1));
    CHECK(p.ready() != id);
}

TEST_CASE("a sandbox that answers again has no failures left", "[unit][controller]") {
    Probed p;
    const pool::SandboxId id = p.ready();
    for (int round = 0; round < 2; ++round) {
        p.ground.runtime.hang(id);
        p.probe.probe(id);
        p.probe.probe(id);
        p.ground.runtime.resume(id);
        CHECK_FALSE(p.probe.probe(id).again);
    }
    CHECK(p.house.warm.find(id)->phase == pool::Phase::Ready);
}

TEST_CASE("a claimed sandbox is never asked", "[unit][controller]") {
    Probed p;
    const WorkspaceView view = p.house.open(p.house.who, House::request());
    p.ground.runtime.hang(view.sandbox_id);
    for (int i = 0; i < 5; ++i) CHECK_FALSE(p.probe.probe(view.sandbox_id).again);
    CHECK(p.house.warm.find(view.sandbox_id)->phase == pool::Phase::Claimed);
    p.ground.runtime.resume(view.sandbox_id);
}

TEST_CASE("no sandbox of a pool is replaced while most of them are silent", "[unit][controller]") {
    Probed p;
    p.house.declare("p", smallSpec(3));
    REQUIRE(p.house.filled("p", 3));
    const std::vector<pool::Member> all = p.house.warm.members("p");
    for (const pool::Member& member : all) p.ground.runtime.hang(member.id);
    for (int i = 0; i < 3; ++i) {
        for (const pool::Member& member : all) p.probe.probe(member.id);
    }
    CHECK(p.house.warm.counts("p").ready == 3);
    p.ground.runtime.resume(all[0].id);
    p.ground.runtime.resume(all[1].id);
    p.probe.probe(all[0].id);
    p.probe.probe(all[1].id);
    p.probe.probe(all[2].id);
    CHECK(p.house.warm.counts("p").ready == 2);
}

TEST_CASE("every ready sandbox gets a probe, and a claimed one gets none", "[unit][controller]") {
    Probed p;
    const WorkspaceView view = p.house.open(p.house.who, House::request());
    REQUIRE(p.house.filled("p", 1));
    p.house.loop.settle();
    CHECK(p.house.probes.look().again == 30s);
    std::set<pool::SandboxId> probed;
    while (const std::optional<WorkKey> key = p.house.work.takeDue()) {
        if (key->kind == WorkKind::Probe) probed.insert(key->name);
        p.house.work.settled(*key);
        p.house.work.done(*key);
    }
    CHECK(probed.size() == 1);
    CHECK_FALSE(probed.contains(view.sandbox_id));
}
