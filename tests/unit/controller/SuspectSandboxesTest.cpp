#include <algorithm>

#include "controller/SuspectSandboxes.h"
#include "tests/unit/controller/Support.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::controller::test;
using namespace std::chrono_literals;

namespace {

constexpr auto kShort = 100ms;

ExecutionRequest dayLong(const std::string& line) {
    ExecutionRequest request = inBackground(line);
    request.timeout = 24h;
    return request;
}

/// A workspace with a running execution, whose agent is stopped when its server dies.
struct Stopped {
    explicit Stopped(Ground& ground) {
        House house(ground);
        PoolSpec spec = smallSpec(1);
        spec.per_tenant = 1;
        house.declare("p", spec);
        house.recover();
        REQUIRE(house.filled("p", 1));
        workspace = house.open(house.who, House::request("key"));
        house.workspaces.makeDirectory(house.who, workspace.id, "kept");
        running = house.executions.start(house.who, workspace.id, dayLong("sleep 1000"))->id();
        house.journal.flush(5s);
        ground.runtime.hang(workspace.sandbox_id);
    }
    WorkspaceView workspace;
    std::string running;
};

/// A server with an open workspace.
struct Open {
    Open() {
        house.declare("p", smallSpec(1));
        REQUIRE(house.filled("p", 1));
        id = house.open(house.who, House::request("key")).id;
        workspace = house.table.find(id);
        sandbox = workspace->facts().sandbox;
    }
    void hang() {
        house.patience = kShort;
        workspace->agent()->patience(kShort);
        ground.runtime.hang(sandbox);
    }
    Ground ground;
    House house{ground};
    std::string id;
    std::shared_ptr<Workspace> workspace;
    std::string sandbox;
};

}  // namespace

TEST_CASE("a sandbox that is stopped over a restart keeps its workspace", "[unit][controller]") {
    Ground ground;
    const Stopped left(ground);
    House house(ground);
    house.patience = kShort;
    const Recovery::Outcome outcome = house.recover();
    CHECK(outcome.silent == std::vector<std::string>{left.workspace.sandbox_id});
    house.loop.settle();
    CHECK(exists(ground, left.workspace.sandbox_id));
    CHECK(house.marks.exists(left.workspace.sandbox_id));
    CHECK(toldOf(house, "sandbox.suspect") > 0);
    CHECK(house.metrics.render().find("hearth_suspect_sandboxes{pool=\"p\"} 1") !=
          std::string::npos);

    // A caller is asked to try again, and nobody else gets the workspace's place.
    const auto code = [&](const auto& call) { return codeOf(call); };
    CHECK(code([&] { house.workspaces.get(house.who, left.workspace.id); }) ==
          ErrorCode::Unavailable);
    CHECK(house.workspaces.list(house.who, {}).items.empty());
    CHECK(house.workspaces.list(house.who, {}).unanswered == 1);
    CHECK(house.workspaces.list({"other", Role::User, ""}, {}).unanswered == 0);
    CHECK(code([&] { house.open(house.who, House::request("key")); }) == ErrorCode::Unavailable);
    CHECK(code([&] { house.executions.find(house.who, left.running); }) == ErrorCode::Unavailable);
    CHECK(code([&] { house.open(house.who, House::request("another")); }) ==
          ErrorCode::QuotaExceeded);
    CHECK(errorOf([&] { house.workspaces.get(house.who, left.workspace.id); }).retryAfter());

    ground.runtime.resume(left.workspace.sandbox_id);
    REQUIRE(laterOn(house, [&] { return house.table.find(left.workspace.id) != nullptr; }));
    CHECK(toldOf(house, "sandbox.answers") > 0);
    CHECK(house.metrics.render().find("hearth_suspect_sandboxes{pool=\"p\"} 0") !=
          std::string::npos);
    CHECK(house.workspaces.get(house.who, left.workspace.id).sandbox_id ==
          left.workspace.sandbox_id);
    CHECK(house.workspaces.list(house.who, {}).unanswered == 0);
    CHECK(house.workspaces.stat(house.who, left.workspace.id, "kept").type ==
          agent::FileType::Directory);
    CHECK(house.open(house.who, House::request("key")).replayed);
    const auto running = house.executions.find(house.who, left.running);
    CHECK_FALSE(running->finished());
    house.executions.kill(house.who, left.running);
    CHECK(house.settleUntil([&] { return running->finished(); }));
    CHECK(running->view().status == ExecutionStatus::Killed);
}

TEST_CASE("one tenant's silent sandboxes leave time at a start for another's",
          "[unit][controller]") {
    constexpr std::uint32_t kSilent = 100;  // three times as many as there is time for
    const Principal other{"other", Role::User, ""};
    Ground ground;
    constexpr std::uint32_t kOthers = 4;
    std::vector<std::string> others;
    {
        House house(ground);
        PoolSpec spec = smallSpec(kSilent + kOthers);
        spec.warm_max = kSilent + kOthers;
        spec.max_members = kSilent + kOthers;
        spec.per_tenant = kSilent;
        spec.parallel_creates = 16;
        house.declare("p", spec);
        REQUIRE(house.filled("p", kSilent + kOthers));
        for (std::uint32_t i = 0; i < kSilent; ++i) {
            ground.runtime.hang(house.open(house.who, House::request()).sandbox_id);
        }
        for (std::uint32_t i = 0; i < kOthers; ++i) {
            others.push_back(house.open(other, House::request()).id);
        }
        house.journal.flush(5s);
    }
    House house(ground);
    house.patience = kShort;
    CHECK(house.recover().silent.size() >= kSilent);
    for (const std::string& id : others) CHECK(house.table.find(id));
}

TEST_CASE("an idempotency key is in flight while a silent sandbox may hold its claim",
          "[unit][controller]") {
    Ground ground;
    const Stopped left(ground);
    ground.loseData();
    House house(ground);
    house.patience = kShort;
    PoolSpec spec = smallSpec(1);
    spec.per_tenant = 3;
    house.declare("p", spec);
    CHECK(house.recover().silent.size() == 1);
    REQUIRE(house.filled("p", 1));
    CHECK(codeOf([&] { house.open(house.who, House::request("key")); }) ==
          ErrorCode::IdempotencyInFlight);
    CHECK(house.open(house.who, House::request()).phase == WorkspacePhase::Active);
    ground.runtime.resume(left.workspace.sandbox_id);
    REQUIRE(laterOn(house, [&] { return house.table.find(left.workspace.id) != nullptr; }));
    const WorkspaceView again = house.open(house.who, House::request("key"));
    CHECK(again.replayed);
    CHECK(again.id == left.workspace.id);
}

TEST_CASE("a silent sandbox ends on its runtime's word at once", "[unit][controller]") {
    Ground ground;
    const Stopped left(ground);
    House house(ground);
    house.patience = kShort;
    house.recover();
    house.loop.settle();
    ground.runtime.kill(left.workspace.sandbox_id);
    REQUIRE(laterOn(house, [&] { return !exists(ground, left.workspace.sandbox_id); }));
    CHECK(errorOf([&] { house.workspaces.get(house.who, left.workspace.id); }).endedReason() ==
          "lost");
    CHECK_FALSE(house.marks.exists(left.workspace.sandbox_id));
}

TEST_CASE("a silence longer than its pool allows ends a workspace", "[unit][controller]") {
    Ground ground;
    const Stopped left(ground);
    House house(ground);
    house.patience = kShort;
    house.recover();
    house.loop.settle();
    ground.manual.advance(PoolSpec{}.silence_timeout - 1s);
    house.loop.settle();
    CHECK(exists(ground, left.workspace.sandbox_id));
    REQUIRE(laterOn(house, [&] { return !exists(ground, left.workspace.sandbox_id); }));
    CHECK(codeOf([&] { house.workspaces.get(house.who, left.workspace.id); }) == ErrorCode::Gone);
    CHECK(codeOf([&] { house.executions.find(house.who, left.running); }) == ErrorCode::NotFound);
}

TEST_CASE("a workspace whose sandbox is silent can be closed", "[unit][controller]") {
    Ground ground;
    const Stopped left(ground);
    House house(ground);
    house.patience = kShort;
    house.recover();
    house.workspaces.close(house.who, left.workspace.id);
    REQUIRE(laterOn(house, [&] { return !exists(ground, left.workspace.sandbox_id); }));
    house.journal.flush(5s);
    CHECK(errorOf([&] { house.workspaces.get(house.who, left.workspace.id); }).endedReason() ==
          "deleted");
}

TEST_CASE("a silent sandbox that was never claimed is replaced", "[unit][controller]") {
    Ground ground;
    std::string warm;
    {
        House house(ground);
        house.declare("p", smallSpec(1));
        REQUIRE(house.filled("p", 1));
        warm = house.warm.members("p").at(0).id;
    }
    ground.runtime.hang(warm);
    House house(ground);
    house.patience = kShort;
    CHECK(house.recover().silent.empty());
    REQUIRE(house.filled("p", 1));
    CHECK(house.settleUntil([&] { return !exists(ground, warm); }));
}

TEST_CASE("the end of a connection ends neither workspace nor execution", "[unit][controller]") {
    Open open;
    House& house = open.house;
    ExecutionRequest request = dayLong("cat");
    request.stdin_open = true;
    const auto running = house.executions.start(house.who, open.id, request);
    house.executions.writeStdin(house.who, running->id(), "before\n", false);
    REQUIRE(eventually([&] { return running->view().stdout_bytes == "before\n"; }));

    const auto first = open.workspace->agent();
    open.ground.runtime.sever(open.sandbox);
    REQUIRE(eventually([&] { return first->lost(); }));
    REQUIRE(house.settleUntil([&] { return open.workspace->agent() != first; }));
    CHECK_FALSE(open.workspace->silentSince());
    CHECK_FALSE(running->finished());
    CHECK(house.warm.find(open.sandbox)->agent == open.workspace->agent());
    house.executions.writeStdin(house.who, running->id(), "after\n", true);
    REQUIRE(house.settleUntil([&] { return running->finished(); }));
    CHECK(running->view().stdout_bytes == "before\nafter\n");
    CHECK(running->view().status == ExecutionStatus::Ok);
    CHECK(toldOf(house, "workspace.reclaimed") == 0);
    CHECK(toldOf(house, "sandbox.suspect") == 0);  // the agent answered the first question
}

TEST_CASE("a silent agent is asked again, and no call waits for it meanwhile",
          "[unit][controller]") {
    Open open;
    House& house = open.house;
    open.hang();
    CHECK(codeOf([&] { house.workspaces.touch(house.who, open.id); }) == ErrorCode::Unavailable);
    REQUIRE(open.workspace->silentSince());
    open.workspace->agent()->patience(1h);  // so that a call to the agent would block
    CHECK(codeOf([&] { house.workspaces.touch(house.who, open.id); }) == ErrorCode::Unavailable);
    CHECK(codeOf([&] { house.executions.start(house.who, open.id, dayLong("echo 1")); }) ==
          ErrorCode::Unavailable);
    CHECK(codeOf([&] { house.contexts.create(house.who, open.id, {}); }) == ErrorCode::Unavailable);
    house.loop.settle();
    CHECK(toldOf(house, "sandbox.suspect") > 0);
    open.workspace->agent()->patience(5s);
    open.ground.runtime.resume(open.sandbox);
    REQUIRE(laterOn(house, [&] { return !open.workspace->silentSince(); }));
    CHECK(house.workspaces.touch(house.who, open.id).phase == WorkspacePhase::Active);
    CHECK(toldOf(house, "workspace.reclaimed") == 0);
}

TEST_CASE("a connection that stays silent is replaced by another", "[unit][controller]") {
    Open open;
    House& house = open.house;
    const auto running = house.executions.start(house.who, open.id, dayLong("sleep 1000"));
    const auto first = open.workspace->agent();
    house.workspaces.touch(house.who, open.id);  // all messages of the agent have arrived
    open.hang();
    CHECK(codeOf([&] { house.workspaces.touch(house.who, open.id); }) == ErrorCode::Unavailable);
    for (int i = 0; i < 10; ++i) {
        house.loop.settle();
        open.ground.manual.advance(20s);
    }
    house.loop.settle();
    open.ground.runtime.resume(open.sandbox);
    REQUIRE(laterOn(house, [&] { return !open.workspace->silentSince(); }));
    CHECK(open.workspace->agent() != first);
    CHECK_FALSE(running->finished());
    house.executions.kill(house.who, running->id());
    REQUIRE(house.settleUntil([&] { return running->finished(); }));
    CHECK(running->view().status == ExecutionStatus::Killed);
}

TEST_CASE("a workspace ends if the agent of its sandbox reports another claim",
          "[unit][controller]") {
    Open open;
    House& house = open.house;
    const auto running = house.executions.start(house.who, open.id, dayLong("sleep 1000"));
    open.ground.runtime.destroy(open.sandbox);
    open.ground.runtime.create(open.sandbox, {});
    REQUIRE(house.settleUntil([&] { return !house.table.find(open.id); }));
    CHECK(running->view().status == ExecutionStatus::Lost);
    CHECK(codeOf([&] { house.workspaces.get(house.who, open.id); }) == ErrorCode::Gone);
}
