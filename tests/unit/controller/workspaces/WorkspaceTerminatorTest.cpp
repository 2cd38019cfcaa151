#include <thread>

#include "controller/workspaces/WorkspaceTerminator.h"
#include "tests/unit/controller/Support.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::controller::test;
using namespace std::chrono_literals;

namespace {

/// Returns the number of workspaces in the table whose sandbox is not claimed.
std::size_t deadWorkspaces(const House& house) {
    std::size_t dead = 0;
    for (const std::shared_ptr<Workspace>& workspace : house.table.all()) {
        const auto member = house.warm.find(workspace->facts().sandbox);
        if (!member || member->phase != pool::Phase::Claimed) ++dead;
    }
    return dead;
}

}  // namespace

TEST_CASE("a sandbox that was claimed since it was seen cannot be retired", "[unit][controller]") {
    Filled filled(1);
    House& house = filled.house;
    const pool::Member seen = house.warm.members("p").at(0);
    const WorkspaceView view = house.open(house.who, House::request());
    REQUIRE(view.sandbox_id == seen.id);
    CHECK_FALSE(house.terminator.retire(seen, EndReason::Drain));
    CHECK(house.warm.find(seen.id)->phase == pool::Phase::Claimed);
    CHECK(house.workspaces.get(house.who, view.id).phase == WorkspacePhase::Active);
}

TEST_CASE("the end of a sandbox ends the workspace that names it, whatever its phase is",
          "[unit][controller]") {
    Filled filled(1);
    House& house = filled.house;
    const auto reason = [&](const std::string& id) {
        return errorOf([&] { house.workspaces.get(house.who, id); }).endedReason();
    };
    SECTION("its agent is lost while it drains") {
        const WorkspaceView view = house.open(house.who, House::request());
        house.warm.drain(view.sandbox_id);
        house.terminator.lost(view.sandbox_id, "gone");
        CHECK(reason(view.id) == "lost");
    }
    SECTION("it is destroyed") {
        const WorkspaceView view = house.open(house.who, House::request());
        house.warm.drain(view.sandbox_id);
        house.sandboxes.reconcile(view.sandbox_id);
        CHECK(reason(view.id) == "lost");
        CHECK_FALSE(house.warm.find(view.sandbox_id));
    }
    SECTION("its member has gone") {
        const WorkspaceView view = house.open(house.who, House::request());
        house.warm.remove(view.sandbox_id);
        house.terminator.lost(view.sandbox_id, "gone");
        CHECK(reason(view.id) == "lost");
    }
}

TEST_CASE("a claim becomes no workspace if the end of its sandbox began before",
          "[unit][controller]") {
    Filled filled(1);
    House& house = filled.house;
    const WorkspaceView view = house.open(house.who, House::request());
    const std::shared_ptr<Workspace> workspace = house.table.find(view.id);
    CHECK(house.terminator.confirm(workspace));
    CHECK(house.table.find(view.id));
    house.warm.fail(view.sandbox_id);  // its end looked into the table before the insertion
    CHECK_FALSE(house.terminator.confirm(workspace));
    CHECK_FALSE(house.table.find(view.id));
    CHECK(house.table.countOf("p") == 0);
}

TEST_CASE("drains at the time of claims leave no workspace without its sandbox",
          "[unit][controller]") {
    Filled filled(8);
    House& house = filled.house;
    PoolService& service = filled.house.pools;
    PoolSpec spec = smallSpec(8);
    spec.warm_max = 8;
    house.declare("p", spec);
    constexpr int kClaims = 60;
    std::atomic<bool> stop{false};
    std::atomic<int> claims{0};
    // The threads also stop by themselves: settle() does not return while they add work.
    const auto over = [&] { return stop || claims >= kClaims; };
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&] {
            while (!over()) {
                try {
                    const WorkspaceView view = house.open(house.who, House::request());
                    ++claims;
                    if (view.id.back() % 2 == 0) house.workspaces.close(house.who, view.id);
                } catch (const Error&) {  // its sandbox was drained, or none is ready
                }
            }
        });
    }
    threads.emplace_back([&] {  // an operator who acts on an outdated list
        while (!over()) {
            const std::vector<pool::Member> seen = house.warm.members("p");
            std::this_thread::yield();
            for (const pool::Member& member : seen) {
                try {
                    service.destroySandbox(house.who, member.id);
                } catch (const Error&) {  // just being claimed, or gone
                }
            }
        }
    });
    for (int round = 0; !over() && round < 2000; ++round) {
        house.loop.settle();
        filled.manual.advance(1ms);
        for (const pool::Member& member : house.warm.members("p")) {
            if (round % 10 == 0) house.terminator.retire(member, EndReason::Replaced);
        }
    }
    stop = true;
    house.line.setGate(ClaimQueue::Gate::Closed, Error(ErrorCode::Unavailable, "over"));
    threads.clear();
    house.loop.settle();
    CHECK(claims >= 10);
    CHECK(deadWorkspaces(house) == 0);
    for (const WorkspaceView& view : house.workspaces.list(house.who, {}).items) {
        CHECK_NOTHROW(house.workspaces.touch(house.who, view.id));
    }
}
