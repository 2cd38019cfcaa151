#include <catch2/catch.hpp>

#include "controller/services/TimelineService.h"
#include "tests/unit/controller/Principals.h"
#include "tests/unit/controller/Support.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::controller::test;
using namespace std::chrono_literals;

namespace {

const Principal kOtherOperator{"other", Role::Operator, ""};

}  // namespace

TEST_CASE("a workspace's timeline tells its claim, also after its end", "[unit][controller]") {
    Filled filled;
    House& house = filled.house;
    const WorkspaceView view = house.open(house.who, House::request());
    const Timeline line = house.timelines.ofWorkspace(house.who, view.id);
    CHECK(line.id == view.id);
    CHECK(line.pool == "p");
    CHECK_FALSE(line.execution);
    REQUIRE(line.scene);
    CHECK(line.scene->place == 0);
    CHECK(line.scene->pool.ready == 1);
    house.workspaces.close(house.who, view.id);
    CHECK(house.timelines.ofWorkspace(house.who, view.id).sentence == line.sentence);
}

TEST_CASE("the timeline of a claim that waited has its place in line and the pool's state",
          "[unit][controller]") {
    Filled filled;
    House& house = filled.house;
    const WorkspaceView first = house.open(house.who, House::request());
    WorkspaceRequest request = House::request();
    request.started_at = filled.clock.now();
    auto claim = house.claiming(house.who, request);
    REQUIRE_FALSE(claim.run());
    filled.manual.advance(300ms);
    REQUIRE(house.filled("p", 0));
    REQUIRE(house.settleUntil([&] { return claim.run(); }));
    const WorkspaceView second = claim.result();
    const Timeline line = house.timelines.ofWorkspace(house.who, second.id);
    REQUIRE(line.scene);
    CHECK(line.scene->place == 1);
    CHECK(line.scene->pool.waiting == 1);
    CHECK(line.scene->pool.ready == 0);
    CHECK(line.scene->pool.claimed == 1);
    CHECK(line.total_ms >= 300);
}

TEST_CASE("only its tenant and operators see a workspace's timeline", "[unit][controller]") {
    Filled filled;
    House& house = filled.house;
    const WorkspaceView view = house.open(house.who, House::request());
    CHECK(errorOf([&] { house.timelines.ofWorkspace(kOther, view.id); }).code() ==
          ErrorCode::NotFound);
    CHECK(house.timelines.ofWorkspace(kOtherOperator, view.id).id == view.id);
    CHECK(errorOf([&] { house.timelines.ofWorkspace(house.who, "ws_none"); }).code() ==
          ErrorCode::NotFound);
}

TEST_CASE("an unreadable timeline leaves its workspace's record as it is", "[unit][controller]") {
    Filled filled;
    House& house = filled.house;
    const WorkspaceView view = house.open(house.who, House::request());
    house.journal.flush(5s);
    const std::string story = GENERATE("{}", "[]", "not JSON", "{\"claim\":{},\"place\":null}");
    house.journal.writeNow([&](Database& database) {
        Statement(database, "UPDATE workspaces SET story = ?").bind(story).run();
    });
    const auto record = house.journal.workspace(view.id);
    REQUIRE(record);
    CHECK_FALSE(record->story);
    CHECK(house.timelines.ofWorkspace(house.who, view.id).stages.empty());
}

TEST_CASE("only operators see how busy the machine was", "[unit][controller]") {
    Filled filled;
    House& house = filled.house;
    ClaimStory story;
    story.scene.pressure = {1, 2, 3};
    house.journal.record(WorkspaceRecord{"ws_slow", "other", "p", "sb_1", "cl_1", "", "", 1'000,
                                         std::nullopt, "", story});
    CHECK_FALSE(house.timelines.ofWorkspace(kOther, "ws_slow").scene->pressure);
    CHECK(house.timelines.ofWorkspace(kOtherOperator, "ws_slow").scene->pressure);
}

TEST_CASE("a workspace whose record was lost has a timeline without stages", "[unit][controller]") {
    Filled filled;
    House& house = filled.house;
    house.journal.record(
        WorkspaceRecord{"ws_old", "default", "p", "sb_1", "cl_1", "", "", 1'000, std::nullopt, ""});
    const Timeline line = house.timelines.ofWorkspace(house.who, "ws_old");
    CHECK(line.stages.empty());
    CHECK_FALSE(line.scene);
    CHECK(line.sentence.find("Nothing is known") == 0);
}
