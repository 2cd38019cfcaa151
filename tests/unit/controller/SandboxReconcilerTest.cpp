#include "tests/unit/controller/House.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::controller::test;
using namespace std::chrono_literals;

namespace {

/// A house whose runtime works from afar: it accepts sandboxes and tells news of them.
struct FarHouse {
    Ground ground;
    House house{ground};

    FarHouse() {
        ground.runtime.acceptOnly();
        ground.runtime.onNews([this](const pool::SandboxId& id) {
            house.work.add({"sandbox", id});
        });
        house.declare("p", smallSpec(2));
    }
    ~FarHouse() { ground.runtime.onNews({}); }
    FarHouse(const FarHouse&) = delete;
    FarHouse& operator=(const FarHouse&) = delete;

    bool asked(std::size_t count) {
        return house.settleUntil([&] { return ground.runtime.created() == count; });
    }
};

}  // namespace

TEST_CASE("a sandbox that was only accepted is warm when it listens", "[unit][controller]") {
    FarHouse far;
    REQUIRE(far.asked(2));
    far.house.loop.settle();
    CHECK(far.house.warm.counts("p").creating == 2);
    CHECK(far.house.warm.counts("p").ready == 0);
    far.ground.runtime.letListen();
    CHECK(far.house.filled("p", 2));
    CHECK(far.ground.runtime.created() == 2);
}

TEST_CASE("an accepted sandbox is found to listen without news too", "[unit][controller]") {
    FarHouse far;
    REQUIRE(far.asked(2));
    far.ground.runtime.onNews({});
    far.ground.runtime.letListen();
    far.ground.manual.advance(3s);
    CHECK(far.house.filled("p", 2));
}

TEST_CASE("an accepted sandbox that ends, or never listens, is replaced", "[unit][controller]") {
    FarHouse far;
    REQUIRE(far.asked(2));
    const pool::SandboxId first = far.ground.runtime.list().front().id;
    far.ground.runtime.kill(first);
    CHECK(far.house.settleUntil([&] { return !far.house.warm.find(first); }));
    far.ground.manual.advance(6min);
    CHECK(far.house.settleUntil([&] { return far.ground.runtime.created() >= 4; }));
    far.ground.runtime.letListen();
    CHECK(far.house.settleUntil([&] {
        far.ground.runtime.letListen();
        return far.house.warm.counts("p").ready == 2;
    }));
}

TEST_CASE("a claimed sandbox that the runtime saw end takes its workspace along",
          "[unit][controller]") {
    FarHouse far;
    REQUIRE(far.asked(2));
    far.ground.runtime.letListen();
    REQUIRE(far.house.filled("p", 2));
    const WorkspaceView view = far.house.workspaces.create(far.house.who, House::request());
    far.ground.runtime.destroy(view.sandbox_id);
    far.house.work.add({"sandbox", view.sandbox_id});
    CHECK(far.house.settleUntil([&] { return !far.house.table.find(view.id); }));
}
