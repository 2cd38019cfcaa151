#include <filesystem>
#include <vector>

#include "controller/Recovery.h"
#include "tests/unit/controller/Support.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::controller::test;
using namespace std::chrono_literals;

namespace {

/// A cluster whose leader has gone, together with the marks of its machine.
struct Leaderless {
    Ground ground;
    std::vector<pool::SandboxId> warm;
    WorkspaceView workspace;

    Leaderless() {
        ground.runtime.beCluster();
        House leader(ground);
        leader.declare("p", pulledSpec(2));
        leader.recover();
        REQUIRE(leader.filled("p", 2));
        workspace = leader.open(leader.who, House::request());
        REQUIRE(leader.filled("p", 2));
        for (const pool::Member& member : leader.warm.members("p")) {
            if (member.phase == pool::Phase::Ready) warm.push_back(member.id);
        }
        leader.journal.flush(1s);
    }
    /// Removes the marks, because the next leader is on another machine.
    void forgetMarks() const { std::filesystem::remove_all(ground.dir.file("claimed")); }
};

}  // namespace

TEST_CASE("a new leader retires an unbound Pod that has the note of a claim",
          "[unit][controller]") {
    Leaderless at;
    at.ground.runtime.noteClaim(at.warm[0]);
    at.forgetMarks();
    House next(at.ground);
    const Recovery::Outcome outcome = next.recover();
    CHECK(outcome.workspaces == 1);
    CHECK(outcome.warm == 1);
    CHECK(outcome.swept == 1);
    CHECK_FALSE(exists(at.ground, at.warm[0]));
    REQUIRE(next.filled("p", 2));
    CHECK(next.warm.find(at.warm[1])->phase == pool::Phase::Ready);
    CHECK(next.workspaces.get(next.who, at.workspace.id).phase == WorkspacePhase::Active);
}

TEST_CASE("a new leader keeps a silent Pod without a known claim, and gives it to no claim",
          "[unit][controller]") {
    Leaderless at;
    at.ground.runtime.hang(at.warm[0]);
    at.forgetMarks();
    House next(at.ground);
    const Recovery::Outcome outcome = next.recover();
    CHECK(outcome.silent == std::vector<pool::SandboxId>{at.warm[0]});
    CHECK(exists(at.ground, at.warm[0]));
    CHECK(next.warm.find(at.warm[0])->phase == pool::Phase::Claimed);  // it is given to nobody
}

TEST_CASE("the end of a workspace holds for the next leader without mark and record",
          "[unit][controller]") {
    Leaderless at;
    {
        House leader(at.ground);
        leader.recover();
        leader.workspaces.close(leader.who, at.workspace.id);
    }
    at.forgetMarks();
    {
        Database database(at.ground.dir.file("hearth.db"));
        database.execute("UPDATE workspaces SET ended_ms = NULL, reason = ''");
    }
    REQUIRE(exists(at.ground, at.workspace.sandbox_id));
    House next(at.ground);
    next.recover();
    CHECK(codeOf([&] { next.workspaces.get(next.who, at.workspace.id); }) == ErrorCode::Gone);
    CHECK(next.settleUntil([&] { return !exists(at.ground, at.workspace.sandbox_id); }));
}

TEST_CASE("a memory kill of a silent Pod after a change of leaders ends its workspace as oom",
          "[unit][controller]") {
    Leaderless at;
    at.ground.runtime.hang(at.workspace.sandbox_id);
    House next(at.ground);
    REQUIRE(next.recover().silent.size() == 1);
    at.ground.runtime.killForMemory(at.workspace.sandbox_id);
    const auto reason = [&] {
        return errorOf([&] { next.workspaces.get(next.who, at.workspace.id); }).endedReason();
    };
    CHECK(laterOn(next, [&] { return reason() == "oom"; }));
}
