#include "controller/spec/ClaimLimits.h"
#include "tests/support/House.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::controller::test;
using namespace std::chrono_literals;

namespace {

PoolSpec sized(std::uint32_t milli_cpu, std::uint64_t mib, std::uint32_t pids) {
    PoolSpec spec = smallSpec(1);
    spec.limits.milli_cpu = milli_cpu;
    spec.limits.memory_bytes = mib * kMiB;
    spec.limits.pids = pids;
    spec.limits.tmp_bytes = 16 * kMiB;
    return spec;
}

WorkspaceRequest asking(ClaimLimits limits, std::optional<std::string> pool = {}) {
    WorkspaceRequest request = House::request();
    request.limits = limits;
    request.pool = std::move(pool);
    return request;
}

std::vector<std::string> pointers(const Error& error) {
    std::vector<std::string> all;
    for (const FieldError& field : error.fields()) all.push_back(field.pointer);
    return all;
}

}  // namespace

TEST_CASE("a claim's limits are in force, reported, and kept over a crash", "[unit][controller]") {
    Ground ground;
    std::string id;
    std::string sandbox;
    {
        House house(ground);
        house.declare("p", sized(2000, 512, 128));
        REQUIRE(house.filled("p", 1));
        const WorkspaceView view = house.open(house.who, asking({500, 64 * kMiB, std::nullopt}));
        id = view.id;
        sandbox = view.sandbox_id;
        CHECK(view.limits.milli_cpu == 500);
        CHECK(view.limits.memory_bytes == 64 * kMiB);
        CHECK(view.limits.pids == 128);
        CHECK(view.limits.workspace_bytes == house.specs.find("p")->spec.limits.workspace_bytes);
        CHECK(ground.runtime.limitsOf(sandbox) == view.limits);
        CHECK(house.table.find(id)->facts().limits == view.limits);
    }
    House house(ground);
    CHECK(house.recover().workspaces == 1);
    const WorkspaceView view = house.workspaces.get(house.who, id);
    CHECK(view.limits.milli_cpu == 500);
    CHECK(view.limits.memory_bytes == 64 * kMiB);
    CHECK(ground.runtime.limitsOf(sandbox) == view.limits);
}

TEST_CASE("a claim without limits gets its pool's limits without a runtime call",
          "[unit][controller]") {
    Ground ground;
    House house(ground);
    house.declare("p", sized(2000, 512, 128));
    REQUIRE(house.filled("p", 1));
    ground.runtime.failUsage();  // a claim that narrows reads the usage
    const WorkspaceView view = house.open(house.who, House::request());
    CHECK(view.limits == house.specs.find("p")->spec.limits);
    REQUIRE(house.filled("p", 1));
    // A claim for exactly the pool's limits costs no call, either.
    CHECK(house.open(house.who, asking({2000, 512 * kMiB, 128})).limits == view.limits);
}

TEST_CASE("a claim above the limits of its named pool is refused with the figures",
          "[unit][controller]") {
    Ground ground;
    House house(ground);
    house.declare("p", sized(1000, 128, 64));
    REQUIRE(house.filled("p", 1));
    const Error error = errorOf([&] {
        house.open(house.who, asking({2000, 129 * kMiB, 65}, "p"));
    });
    CHECK(error.code() == ErrorCode::InvalidSpec);
    CHECK(std::string(error.what()) == "pool p has 1 cpu, 128Mi memory and 64 processes");
    CHECK(pointers(error) ==
          std::vector<std::string>{"/limits/cpu", "/limits/memoryBytes", "/limits/pids"});
    CHECK(error.fields()[1].reason == "is more than the pool has: 128Mi");
    CHECK(house.warm.counts("p").ready == 1);
    CHECK(house.open(house.who, asking({1000, 128 * kMiB, 64}, "p")).pool == "p");
}

TEST_CASE("a claim without a pool gets the first pool that is large enough", "[unit][controller]") {
    Ground ground;
    House house(ground);
    house.declare("old", sized(1000, 256, 64));
    ground.manual.advance(1s);
    house.declare("large", sized(4000, 2048, 64));
    ground.manual.advance(1s);
    house.declare("p", sized(1000, 128, 256));  // the default
    for (const char* pool : {"old", "large", "p"}) REQUIRE(house.filled(pool, 1));
    const auto chosen = [&](ClaimLimits limits) {
        const std::string pool = house.open(house.who, asking(limits)).pool;
        REQUIRE(house.filled(pool, 1));
        return pool;
    };
    CHECK(chosen({500, {}, {}}) == "p");
    CHECK(chosen({{}, 200 * kMiB, {}}) == "old");
    CHECK(chosen({1500, {}, {}}) == "large");
    CHECK(chosen({{}, {}, 100}) == "p");

    const Error more = errorOf([&] { chosen({5000, {}, {}}); });
    CHECK(more.code() == ErrorCode::InvalidSpec);
    CHECK(pointers(more) == std::vector<std::string>{"/limits/cpu"});
    CHECK(more.fields()[0].reason == "is more than any pool has: at most 4");
    // Some pool has each of the limits, but no pool has both.
    CHECK(pointers(errorOf([&] {
              chosen({4000, {}, 256});
          })) == std::vector<std::string>{"/limits"});
    // If the network fits no pool either, the error names the network.
    WorkspaceRequest other = asking({5000, {}, {}});
    other.network = egress::NetworkMode::Egress;
    CHECK(pointers(errorOf([&] { house.open(house.who, other); })) ==
          std::vector<std::string>{"/network"});
}

TEST_CASE("a limit below a sandbox's current use fails the claim and ends the sandbox",
          "[unit][controller]") {
    Ground ground;
    House house(ground);
    house.declare("p", sized(1000, 128, 64));
    REQUIRE(house.filled("p", 1));
    ground.runtime.useMemory(50 * kMiB + 1);
    const std::string first = house.warm.members("p").front().id;
    const Error error = errorOf([&] { house.open(house.who, asking({{}, 40 * kMiB, {}})); });
    CHECK(error.code() == ErrorCode::InvalidSpec);
    CHECK(pointers(error) == std::vector<std::string>{"/limits/memoryBytes"});
    CHECK(error.fields()[0].reason == "must be above 51 MiB");
    CHECK(house.settleUntil([&] { return !house.warm.find(first); }));
    CHECK_FALSE(house.marks.exists(first));
    CHECK_FALSE(ground.runtime.limitsOf(first));
    CHECK(house.table.all().empty());
    REQUIRE(house.filled("p", 1));
    const auto place = house.table.reserve("default", "p", 1);  // the failed claim holds no place
}

TEST_CASE("a sandbox with lowered limits that was not bound serves no claim",
          "[unit][controller]") {
    Ground ground;
    std::string narrowed;
    {
        House house(ground);
        house.declare("p", sized(1000, 128, 64));
        REQUIRE(house.filled("p", 1));
        narrowed = house.warm.members("p").front().id;
        // The same steps as a claim that is killed before its bind.
        house.marks.set(narrowed);
        pool::SandboxLimits limits = house.specs.find("p")->spec.limits;
        limits.pids = 8;
        REQUIRE_FALSE(ground.runtime.narrow(narrowed, limits));
    }
    House house(ground);
    CHECK(house.recover().swept == 1);
    CHECK_FALSE(ground.runtime.limitsOf(narrowed));
    REQUIRE(house.filled("p", 1));
    CHECK(house.open(house.who, House::request()).limits.pids == 64);
}

TEST_CASE("a warm sandbox from before a raise of its pool's limits serves no larger claim",
          "[unit][controller]") {
    Ground ground;
    House house(ground);
    house.declare("p", sized(1000, 128, 64));
    REQUIRE(house.filled("p", 1));
    const std::string old = house.warm.members("p").front().id;
    bool created = false;
    house.specs.put(poolNamed("p", sized(1000, 256, 64)), SpecStore::Mode::CreateOrReplace, {},
                    created);  // no reconcile has seen it yet
    WorkspaceRequest request = asking({{}, 200 * kMiB, {}});
    request.patience = 1ms;
    CHECK_THROWS_AS(house.open(house.who, request), Error);
    CHECK(house.settleUntil([&] { return !house.warm.find(old); }));
    REQUIRE(house.filled("p", 1));
    const WorkspaceView view = house.open(house.who, request);
    CHECK(view.limits.memory_bytes == 200 * kMiB);
    CHECK(ground.runtime.limitsOf(view.sandbox_id)->memory_bytes == 200 * kMiB);
}
