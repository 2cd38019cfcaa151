#include "controller/ExecutionService.h"
#include "tests/unit/controller/House.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::controller::test;
using namespace std::chrono_literals;

namespace {

ExecutionRequest command(const std::string& line) {
    ExecutionRequest request;
    request.command = line;
    return request;
}

struct Open : Ground {
    House house{*this};
    std::string workspace;

    Open() {
        house.declare("p", smallSpec(2));
        REQUIRE(house.filled("p", 2));
        workspace = house.workspaces.create(house.who, House::request()).id;
    }
};

}  // namespace

TEST_CASE("an execution ends with its output and is found again from disk", "[unit][controller]") {
    Open open;
    House& house = open.house;
    const auto execution = house.executions.start(house.who, open.workspace, command("echo a b"));
    REQUIRE(house.settleUntil([&] { return execution->finished(); }));
    CHECK(execution->view().stdout_bytes == "a b\n");
    CHECK(execution->view().status == "ok");
    CHECK(execution->view().exit_code == 0);
    REQUIRE(
        house.settleUntil([&] { return house.journal.execution(execution->id()).has_value(); }));
    house.loop.settle();
    CHECK(house.executions.find(house.who, execution->id())->view().stdout_bytes == "a b\n");
    CHECK(house.executions.list(house.who, open.workspace).size() == 1);
    const Principal other{"other", Role::Admin, ""};
    CHECK(codeOf([&] { house.executions.find(other, execution->id()); }) == ErrorCode::NotFound);
    CHECK(codeOf([&] { house.executions.signal(house.who, execution->id(), "TERM"); }) ==
          ErrorCode::Conflict);
}

TEST_CASE("the same key runs once", "[unit][controller]") {
    Open open;
    House& house = open.house;
    ExecutionRequest request = command("exit 3");
    request.idempotency_key = "k";
    request.fingerprint = "f";
    const auto first = house.executions.start(house.who, open.workspace, request);
    REQUIRE(house.settleUntil([&] { return first->finished(); }));
    CHECK(house.executions.start(house.who, open.workspace, request)->id() == first->id());
    REQUIRE(house.settleUntil([&] { return house.journal.execution(first->id()).has_value(); }));
    CHECK(house.executions.start(house.who, open.workspace, request)->view().exit_code == 3);
    request.fingerprint = "g";
    CHECK(codeOf([&] { house.executions.start(house.who, open.workspace, request); }) ==
          ErrorCode::IdempotencyMismatch);
}

TEST_CASE("a running execution keeps its workspace and takes input", "[unit][controller]") {
    Open open;
    House& house = open.house;
    ExecutionRequest request = command("cat");
    request.stdin_open = true;
    const auto execution = house.executions.start(house.who, open.workspace, request);
    CHECK_FALSE(house.workspaces.get(house.who, open.workspace).idle_expires_at);
    house.executions.writeStdin(house.who, execution->id(), "input", false);
    house.executions.writeStdin(house.who, execution->id(), "", true);
    REQUIRE(house.settleUntil([&] { return execution->finished(); }));
    CHECK(execution->view().stdout_bytes == "input");
    CHECK(house.settleUntil([&] {
        return house.workspaces.get(house.who, open.workspace).idle_expires_at.has_value();
    }));
}

TEST_CASE("an execution too large for the agent leaves nothing", "[unit][controller]") {
    Open open;
    House& house = open.house;
    ExecutionRequest request = command("true");
    for (int i = 0; i < 3; ++i) request.env["V" + std::to_string(i)] = std::string(100'000, 'x');
    CHECK(codeOf([&] { house.executions.start(house.who, open.workspace, request); }) ==
          ErrorCode::PayloadTooLarge);
    house.loop.settle();
    CHECK(house.executions.list(house.who, open.workspace).empty());
    CHECK(house.workspaces.get(house.who, open.workspace).idle_expires_at);
}

TEST_CASE("a one shot's sandbox goes with its execution", "[unit][controller]") {
    Open open;
    House& house = open.house;
    const auto execution =
        house.executions.startOneShot(house.who, House::request(), command("echo once"));
    REQUIRE(house.settleUntil([&] { return execution->finished(); }));
    const std::string workspace = execution->view().workspace_id;
    REQUIRE(house.settleUntil([&] { return !house.table.find(workspace); }));
    CHECK(house.executions.find(house.who, execution->id())->view().stdout_bytes == "once\n");
    CHECK(house.table.all().size() == 1);
}

TEST_CASE("a second execution's end does not take a one shot's workspace", "[unit][controller]") {
    Open open;
    House& house = open.house;
    const auto first =
        house.executions.startOneShot(house.who, House::request(), command("sleep 9"));
    const std::string workspace = first->view().workspace_id;
    const auto second = house.executions.start(house.who, workspace, command("echo beside"));
    REQUIRE(house.settleUntil([&] { return house.journal.execution(second->id()).has_value(); }));
    house.loop.settle();
    CHECK(house.table.find(workspace));
    CHECK(first->view().status == "running");
    house.executions.kill(house.who, first->id());
    CHECK(house.settleUntil([&] { return !house.table.find(workspace); }));
}

TEST_CASE("an execution in a sandbox that dies is lost", "[unit][controller]") {
    Open open;
    House& house = open.house;
    const auto execution = house.executions.start(house.who, open.workspace, command("sleep 1000"));
    open.runtime.kill(house.workspaces.get(house.who, open.workspace).sandbox_id);
    REQUIRE(house.settleUntil([&] { return execution->finished(); }));
    CHECK(execution->view().status != "ok");
    // Refused, or, where the loss is only just being noticed, lost like the first.
    std::shared_ptr<Execution> late;
    const auto refused =
        codeOf([&] { late = house.executions.start(house.who, open.workspace, command("echo")); });
    if (refused) return;
    REQUIRE(house.settleUntil([&] { return late->finished(); }));
    CHECK(late->view().status != "ok");
}

TEST_CASE("an execution that was killed ends although its runtime cannot tell why",
          "[unit][controller]") {
    Open open;
    House& house = open.house;
    open.runtime.failUsage();
    const auto execution = house.executions.start(house.who, open.workspace, command("sleep 1000"));
    house.executions.kill(house.who, execution->id());
    REQUIRE(house.settleUntil([&] { return execution->finished(); }));
    CHECK(execution->view().status == "killed");
    CHECK(house.workspaces.get(house.who, open.workspace).phase == "Active");
}
