#include "controller/services/OneShots.h"
#include "tests/unit/controller/Support.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::controller::test;
using namespace std::chrono_literals;

namespace {

ExecutionRequest oneShot(const std::string& line, const std::string& key = {}) {
    ExecutionRequest request = command(line);
    request.idempotency_key = key;
    request.fingerprint = "f";
    return request;
}

void declare(House& house) {
    house.declare("p", smallSpec(1));
    REQUIRE(house.filled("p", 1));
}

bool gone(House& house) {
    return house.settleUntil([&] {
        return house.table.all().empty() && house.warm.counts("p").claimed == 0 &&
               house.warm.counts("p").draining == 0;
    });
}

}  // namespace

TEST_CASE("a one shot ends though a file of its workspace is being transferred",
          "[unit][controller]") {
    Ground ground;
    House house(ground);
    declare(house);
    const auto shot = house.runOnce(house.who, House::request(), oneShot("echo 1"));
    const std::shared_ptr<Workspace> workspace = house.table.all().at(0);
    REQUIRE(workspace->workBegan(Activity::Execution, ground.clock.now()));  // like a download
    CHECK(gone(house));
    CHECK(house.executions.find(house.who, shot->id())->view().stdout_bytes == "1\n");
}

TEST_CASE("a one shot waits for a second execution in its workspace", "[unit][controller]") {
    Ground ground;
    House house(ground);
    declare(house);
    const auto shot = house.runOnce(house.who, House::request(), oneShot("sleep 9"));
    const std::string id = house.table.all().at(0)->facts().id;
    const auto second = house.executions.start(house.who, id, oneShot("sleep 99"));
    house.executions.kill(house.who, shot->id());
    REQUIRE(house.settleUntil([&] { return house.journal.hasExecution(shot->id()); }));
    house.loop.settle();
    CHECK(house.table.find(id));
    house.executions.kill(house.who, second->id());
    CHECK(gone(house));
}

TEST_CASE("a one shot that was recorded and not yet ended before a crash ends after it",
          "[unit][controller]") {
    Ground ground;
    std::string id;
    {
        House house(ground);
        declare(house);
        const auto shot = house.runOnce(house.who, House::request(), oneShot("echo 1", "k"));
        id = shot->id();
        REQUIRE(eventually([&] { return shot->finished(); }));
        // The loop never gets to the workspace's end.
        while (!house.journal.hasExecution(id)) {
            ground.manual.advance(1ms);
            house.settler.settle(id);
        }
    }
    House house(ground);
    CHECK(house.recover().workspaces == 1);
    ground.manual.advance(3s);
    CHECK(gone(house));
    const auto again = house.runOnce(house.who, House::request(), oneShot("echo 1", "k"));
    CHECK(again->id() == id);
    CHECK(again->view().replayed);
    CHECK(house.table.all().empty());  // it was not run again
}

TEST_CASE("a one shot that was bound and never sent before a crash ends after it, and can be run",
          "[unit][controller]") {
    Ground ground;
    WorkspaceRequest request = House::request("k");
    std::string workspace;
    {
        House house(ground);
        declare(house);
        const auto opened = resultOf(house.opener.open(house.who, request, true), house.clock);
        workspace = opened.all.front().workspace->facts().id;
        house.journal.flush(5s);
    }
    House house(ground);
    CHECK(house.recover().workspaces == 1);
    SECTION("its client comes back at once and gets the same sandbox") {
        const auto shot = house.runOnce(house.who, request, oneShot("echo 1", "k"));
        ground.manual.advance(3s);
        CHECK(gone(house));
        CHECK(house.executions.find(house.who, shot->id())->view().stdout_bytes == "1\n");
    }
    SECTION("its client comes back late") {
        ground.manual.advance(3s);
        CHECK(gone(house));
        CHECK_FALSE(house.journal.workspace(workspace));
        REQUIRE(house.filled("p", 1));
        const auto shot = house.runOnce(house.who, request, oneShot("echo 1", "k"));
        CHECK(gone(house));
        CHECK(house.executions.find(house.who, shot->id())->view().stdout_bytes == "1\n");
    }
}

TEST_CASE("a one shot that goes on over a crash ends with its execution", "[unit][controller]") {
    Ground ground;
    std::string id;
    {
        House house(ground);
        declare(house);
        ExecutionRequest request = oneShot("sleep 1000");
        request.background = true;
        id = house.runOnce(house.who, House::request(), request)->id();
        house.journal.flush(5s);
    }
    House house(ground);
    CHECK(house.recover().workspaces == 1);
    ground.manual.advance(30s);
    house.loop.settle();
    REQUIRE(house.table.all().size() == 1);
    house.executions.kill(house.who, id);
    CHECK(gone(house));
}
