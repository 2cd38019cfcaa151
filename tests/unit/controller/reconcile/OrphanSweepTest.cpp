#include <algorithm>

#include "controller/reconcile/OrphanSweep.h"
#include "tests/unit/controller/Support.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::controller::test;

namespace {

bool shows(House& house, const std::string& line) {
    return house.metrics.render().find(line) != std::string::npos;
}

}  // namespace

TEST_CASE("a server starts and serves while a leftover cannot be removed", "[unit][controller]") {
    Ground ground;
    std::string open;
    std::string corpse;
    {
        House house(ground);
        house.declare("p", smallSpec(2));
        REQUIRE(house.filled("p", 2));
        open = house.open(house.who, House::request("key")).id;
        corpse = house.open(house.who, House::request()).sandbox_id;
    }
    ground.runtime.kill(corpse);
    ground.runtime.resist(corpse);

    House house(ground);
    CHECK(house.metrics.render().find("hearth_sweep_leftovers 0") != std::string::npos);
    const Recovery::Outcome outcome = house.recover();
    CHECK(outcome.workspaces == 1);
    CHECK(outcome.swept == 1);
    REQUIRE(house.filled("p", 2));
    CHECK(house.workspaces.get(house.who, open).phase == WorkspacePhase::Active);
    CHECK(house.orphans.condition().find(corpse) != std::string::npos);
    CHECK(shows(house, "hearth_sweep_leftovers 1"));
    CHECK(house.marks.exists(corpse));  // its end is not proven
    REQUIRE(laterOn(house, [&] { return true; }));
    house.work.add({WorkKind::Orphans, "all"});  // leaves it to the sweep
    house.loop.settle();
    CHECK(toldOf(house, "sandbox.resists") == 1);

    ground.runtime.resist(corpse, false);
    REQUIRE(laterOn(house, [&] { return house.orphans.condition().empty(); }));
    CHECK_FALSE(house.marks.exists(corpse));
    CHECK(shows(house, "hearth_sweep_leftovers 0"));
    CHECK(toldOf(house, "sandbox.removed") == 1);
    CHECK(ground.runtime.running() == house.warm.members("p").size());
}

TEST_CASE("a sandbox that cannot be removed is reported, and removed later", "[unit][controller]") {
    Ground ground;
    House house(ground);
    house.declare("p", smallSpec(1));
    REQUIRE(house.filled("p", 1));
    const WorkspaceView view = house.open(house.who, House::request());
    ground.runtime.resist(view.sandbox_id);
    house.workspaces.close(house.who, view.id);
    house.loop.settle();
    CHECK(house.orphans.condition().find(view.sandbox_id) != std::string::npos);
    CHECK(shows(house, "hearth_sweep_leftovers 1"));
    CHECK(toldOf(house, "sandbox.resists") == 1);
    ground.runtime.resist(view.sandbox_id, false);
    REQUIRE(laterOn(house, [&] { return !house.warm.find(view.sandbox_id); }));
    CHECK(house.orphans.condition().empty());
    CHECK(shows(house, "hearth_sweep_leftovers 0"));
}
