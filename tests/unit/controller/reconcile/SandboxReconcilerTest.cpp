#include <future>

#include "tests/support/House.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::controller::test;
using namespace std::chrono_literals;

namespace {

/// A house whose runtime is remote: it accepts sandboxes and reports their changes.
struct FarHouse {
    Ground ground;
    House house{ground};

    FarHouse() {
        ground.runtime.acceptOnly();
        ground.runtime.onNews([this](const pool::SandboxId& id) {
            house.work.add({WorkKind::Sandbox, id});
        });
        house.declare("p", pulledSpec(2));
    }
    ~FarHouse() { ground.runtime.onNews({}); }
    FarHouse(const FarHouse&) = delete;
    FarHouse& operator=(const FarHouse&) = delete;

    bool asked(std::size_t count) {
        return house.settleUntil([&] { return ground.runtime.created() == count; });
    }
};

}  // namespace

TEST_CASE("an accepted sandbox becomes warm when it listens", "[unit][controller]") {
    FarHouse far;
    REQUIRE(far.asked(2));
    far.house.loop.settle();
    CHECK(far.house.warm.counts("p").creating == 2);
    CHECK(far.house.warm.counts("p").ready == 0);
    far.ground.runtime.letListen();
    CHECK(far.house.filled("p", 2));
    CHECK(far.ground.runtime.created() == 2);
}

/// The address sanitizer reports any access to the plane after its end.
TEST_CASE("an event after the end of a control plane has no effect", "[unit][controller]") {
    Ground ground;
    ground.runtime.acceptOnly();
    {
        House house(ground);
        house.begin();
        house.declare("p", smallSpec(2));
        REQUIRE(house.settleUntil([&] { return ground.runtime.created() == 2; }));
    }
    ground.runtime.letListen();
    CHECK(ground.runtime.list().front().listening);
}

TEST_CASE("an accepted sandbox that listens is found without an event, too", "[unit][controller]") {
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
    const WorkspaceView view = far.house.open(far.house.who, House::request());
    far.ground.runtime.destroy(view.sandbox_id);
    far.house.work.add({WorkKind::Sandbox, view.sandbox_id});
    CHECK(far.house.settleUntil([&] { return !far.house.table.find(view.id); }));
}

namespace {

PoolSpec specOf(const std::string& image, std::uint32_t min) {
    PoolSpec spec = smallSpec(min);
    spec.image = image;
    spec.parallel_creates = min;
    return spec;
}

}  // namespace

TEST_CASE("creates wait for their image without a worker, and it is unpacked once",
          "[unit][controller]") {
    Ground ground;
    House house(ground);
    ground.runtime.holdFetches();
    house.loop.start();
    // More creates than their lane has workers: each would block one.
    house.declare("slow", specOf("packed-python", 12));
    REQUIRE(eventually([&] { return ground.runtime.unpackings() == 1; }));
    REQUIRE(eventually([&] { return house.warm.counts("slow").creating == 12; }));
    house.declare("quick", specOf("python", 3));
    CHECK(eventually([&] { return house.warm.counts("quick").ready == 3; }));
    CHECK(house.warm.counts("slow").ready == 0);
    ground.runtime.letFetch();
    CHECK(eventually([&] { return house.warm.counts("slow").ready == 12; }));
    CHECK(ground.runtime.unpackings() == 1);
    house.loop.stop();
}

TEST_CASE("a pool whose image is being unpacked says so, and so does a claim that waited for it",
          "[unit][controller]") {
    Ground ground;
    House house(ground);
    const auto progress = [&] {
        for (const PoolCondition& each : house.statuses.of("slow").conditions) {
            if (each.type == ConditionType::Progressing) return each.reason + ": " + each.message;
        }
        return std::string();
    };
    ground.runtime.holdFetches();
    house.loop.start();
    PoolSpec spec = specOf("packed-python", 1);
    spec.max_wait = 60s;
    house.declare("slow", spec);
    REQUIRE(eventually([&] { return progress().starts_with("UnpackingImage"); }));
    CHECK(progress() ==
          "UnpackingImage: 1 being created, after image packed-python has been unpacked");
    WorkspaceRequest request = House::request();
    request.pool = "slow";
    auto waits = std::async(std::launch::async, [&] { return house.open(house.who, request).id; });
    REQUIRE(eventually([&] { return house.line.waiting("slow") == 1; }));
    ground.manual.advance(1s);
    ground.runtime.letFetch();
    const std::string waited = waits.get();
    REQUIRE(eventually([&] { return progress() == "Settled: 0 being created"; }));
    CHECK(
        house.timelines.ofWorkspace(house.who, waited).sentence.find("image was being unpacked") !=
        std::string::npos);
    const std::string after = house.open(house.who, request).id;
    CHECK(house.timelines.ofWorkspace(house.who, after).sentence.find("unpacked") ==
          std::string::npos);
    house.loop.stop();
}

TEST_CASE("an image that cannot be unpacked degrades its pool, which tells why",
          "[unit][controller]") {
    Ground ground;
    House house(ground);
    house.declare("p", specOf("packed-broken", 1));
    REQUIRE(house.settleUntil([&] {
        ground.manual.advance(1s);
        return house.breaker.state("p").degraded();
    }));
    CHECK(house.breaker.state("p").reason == "the image cannot be unpacked");
    // Each attempt unpacks anew, which is reported only once.
    const auto told = [&](const char* type) {
        return house.events.list(house.who, {.type = type, .resource = "p"}).size();
    };
    CHECK(told("pool.image_unpacking") == 1);
    CHECK(told("pool.image_unpacked") == 0);
    CHECK(told("pool.degraded") == 1);
}

TEST_CASE("a reader of an agent only notes its loss, and a key does the work",
          "[unit][controller]") {
    Ground ground;
    House house(ground);
    house.declare("p", smallSpec(1));
    REQUIRE(house.filled("p", 1));
    const pool::Member member = house.warm.members("p").front();
    while (const auto key = house.work.takeDue()) house.work.done(*key);
    ground.runtime.kill(member.id);
    REQUIRE(eventually([&] { return member.agent->lost(); }));
    std::optional<WorkKey> key;
    REQUIRE(eventually([&] { return (key = house.work.takeDue()).has_value(); }));
    CHECK(*key == WorkKey{WorkKind::Lost, member.id});
    CHECK(house.warm.find(member.id)->phase == pool::Phase::Ready);
    house.sandboxes.lose(member.id);
    house.work.done(*key);
    CHECK(house.warm.find(member.id)->phase == pool::Phase::Failed);
    CHECK(house.filled("p", 1));
}

TEST_CASE("a pool tells the languages of its newest agent, and nothing once it has none",
          "[unit][controller]") {
    Ground ground;
    House house(ground);
    CHECK_FALSE(house.warm.languages("p"));
    house.declare("p", smallSpec(2));
    REQUIRE(house.filled("p", 2));
    REQUIRE(house.warm.languages("p"));
    CHECK(*house.warm.languages("p") == house.warm.members("p").front().agent->hello().languages);
    for (const pool::Member& member : house.warm.members("p")) house.warm.remove(member.id);
    CHECK_FALSE(house.warm.languages("p"));
}

TEST_CASE("a warm sandbox on a node that takes no more work is replaced; a claimed one stays",
          "[unit][controller]") {
    FarHouse far;
    far.ground.runtime.beCluster();
    REQUIRE(far.asked(2));
    far.ground.runtime.letListen();
    REQUIRE(far.house.filled("p", 2));
    const std::string claimed = far.house.open(far.house.who, House::request()).sandbox_id;
    const std::vector<pool::Member> before = far.house.warm.members("p");
    for (const pool::Member& member : before) far.ground.runtime.cordon(member.id);
    CHECK(far.house.settleUntil([&] {
        return std::none_of(before.begin(), before.end(), [&](const pool::Member& member) {
            return member.id != claimed && far.house.warm.find(member.id);
        });
    }));
    CHECK(far.house.warm.find(claimed)->phase == pool::Phase::Claimed);
    std::size_t named = 0;
    for (const Event& event : far.house.events.list(far.house.who, {0, "sandbox.retired", ""})) {
        CHECK(event.message == "a warm sandbox was retired: its node is cordoned");
        ++named;
    }
    CHECK(named > 0);
    far.ground.runtime.letListen();
    CHECK(far.house.filled("p", 2));
}
