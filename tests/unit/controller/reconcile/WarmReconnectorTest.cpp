#include "tests/support/House.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::controller::test;
using namespace std::chrono_literals;

namespace {

/// A pool of two in a cluster, both ready.
struct Clustered {
    Ground ground;
    std::unique_ptr<House> house;

    Clustered() {
        ground.runtime.beCluster();
        house = std::make_unique<House>(ground);
        house->declare("p", pulledSpec(2));
        house->recover();
        REQUIRE(house->filled("p", 2));
    }
    std::vector<pool::SandboxId> warm() const {
        std::vector<pool::SandboxId> ids;
        for (const pool::Member& member : house->warm.members("p")) ids.push_back(member.id);
        return ids;
    }
    bool connected() const {
        const std::vector<pool::Member> all = house->warm.members("p");
        return std::all_of(all.begin(), all.end(), [](const pool::Member& member) {
            return member.agent && !member.agent->lost();
        });
    }
    /// Breaks the connection. The loop has not noticed it yet.
    void sever(const pool::SandboxId& id) {
        ground.runtime.sever(id);
        REQUIRE(eventually([&] { return house->warm.find(id)->agent->lost(); }));
    }
};

}  // namespace

TEST_CASE("in a cluster a warm sandbox outlives its connection", "[unit][controller]") {
    Clustered at;
    const std::vector<pool::SandboxId> before = at.warm();
    for (const pool::SandboxId& id : before) at.sever(id);
    REQUIRE(at.house->settleUntil([&] { return at.connected(); }));
    CHECK(at.warm() == before);
    CHECK(at.ground.runtime.created() == 2);
    CHECK(at.house->logged("sandbox.reconnected").size() == 2);
    CHECK_NOTHROW(at.house->open(at.house->who, House::request()));
}

TEST_CASE("no claim gets a sandbox whose connection is broken", "[unit][controller]") {
    Clustered at;
    const std::vector<pool::SandboxId> before = at.warm();
    const pool::SandboxId oldest = at.house->warm.claim("p", "ws_a", "t")->id;
    REQUIRE(at.house->warm.giveBack(oldest));
    at.sever(oldest);
    const std::string given = at.house->open(at.house->who, House::request()).sandbox_id;
    CHECK(given != oldest);
    CHECK(std::find(before.begin(), before.end(), given) != before.end());
}

TEST_CASE("a warm sandbox that stays away, or has ended, is replaced", "[unit][controller]") {
    Clustered at;
    const std::vector<pool::SandboxId> before = at.warm();
    at.ground.runtime.kill(before[0]);
    REQUIRE(at.house->settleUntil([&] { return !at.house->warm.find(before[0]); }));
    CHECK(at.house->filled("p", 2));
}

TEST_CASE("on one machine a lost connection ends a warm sandbox", "[unit][controller]") {
    Ground ground;
    House house(ground);
    house.declare("p", smallSpec(1));
    house.recover();
    REQUIRE(house.filled("p", 1));
    const pool::SandboxId id = house.warm.members("p").front().id;
    ground.runtime.sever(id);
    CHECK(house.settleUntil([&] { return !house.warm.find(id); }));
}
