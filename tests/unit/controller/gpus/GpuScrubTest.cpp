#include <catch2/catch.hpp>

#include "tests/unit/controller/gpus/GpuPool.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::controller::test;
using namespace std::chrono_literals;

TEST_CASE("a device of unknown history is scrubbed before its first use", "[unit][gpu]") {
    Ground ground;
    ground.gpus.have(FakeGpuHost::several(2));
    House house(ground);
    house.declare("p", gpuSpec(2));
    house.recover();
    CHECK(states(house)[GpuState::Free] == 0);
    REQUIRE(house.filled("p", 2));
    CHECK(ground.gpus.scrubs(FakeGpuHost::uuid(1)) == 1);
    CHECK(ground.gpus.scrubs(FakeGpuHost::uuid(2)) == 1);
    CHECK(states(house)[GpuState::Leased] == 2);
}

TEST_CASE("a device comes back only after its scrub, and one whose scrub fails stays out",
          "[unit][gpu]") {
    GpuPool filled(1);
    Ground& ground = filled.ground;
    House& house = filled.house;
    const WorkspaceView view = house.open(house.who, House::request());
    CHECK(view.gpus == std::vector<std::string>{FakeGpuHost::uuid(1)});
    CHECK(gpuOf(house, 1).holders.at(0).workspace == view.id);

    house.workspaces.close(house.who, view.id);
    REQUIRE(house.filled("p", 1));
    CHECK(ground.gpus.scrubs(FakeGpuHost::uuid(1)) == 2);

    ground.gpus.failScrubs(FakeGpuHost::uuid(1), "a byte was not zero");
    const WorkspaceView second = house.open(house.who, House::request());
    house.workspaces.close(house.who, second.id);
    REQUIRE(house.settleUntil([&] { return gpuOf(house, 1).state == GpuState::Condemned; }));
    CHECK(gpuOf(house, 1).reason == "a byte was not zero");
    house.pool_reconciler.reconcile("p");
    CHECK(house.warm.counts("p").total() == 0);
    CHECK(house.logged("gpu.condemned").size() == 1);

    ground.gpus.failScrubs(FakeGpuHost::uuid(1), "");
    house.gpu_service.scrub(house.who, FakeGpuHost::uuid(1));
    REQUIRE(house.filled("p", 1));
    CHECK_THROWS_AS(house.gpu_service.scrub(house.who, FakeGpuHost::uuid(1)), Error);
}

TEST_CASE("a scrub without a result condemns no device, and is repeated", "[unit][gpu]") {
    Ground ground;
    ground.gpus.have(FakeGpuHost::several(1));
    ground.gpus.fallSilent(true);
    House house(ground);
    house.gpu_reconciler.look();
    house.loop.settle();
    CHECK(gpuOf(house, 1).state == GpuState::Scrubbing);
    CHECK(ground.gpus.scrubs(FakeGpuHost::uuid(1)) == 1);
    ground.gpus.fallSilent(false);
    ground.manual.advance(31s);
    REQUIRE(house.settleUntil([&] { return gpuOf(house, 1).state == GpuState::Free; }));
}

TEST_CASE("a condemned device is condemned after a restart too", "[unit][gpu]") {
    Ground ground;
    ground.gpus.have(FakeGpuHost::several(1));
    ground.gpus.failScrubs(FakeGpuHost::uuid(1), "it hangs");
    {
        House house(ground);
        house.gpu_reconciler.look();
        REQUIRE(house.settleUntil([&] { return gpuOf(house, 1).state == GpuState::Condemned; }));
    }
    House house(ground);
    house.recover();
    house.loop.settle();
    CHECK(gpuOf(house, 1).state == GpuState::Condemned);
    CHECK(gpuOf(house, 1).reason == "it hangs");
    CHECK(ground.gpus.scrubs(FakeGpuHost::uuid(1)) == 1);
}

TEST_CASE("a clean device stays clean after a restart, unless another server had it meanwhile",
          "[unit][gpu]") {
    Ground ground;
    ground.gpus.have(FakeGpuHost::several(2));
    for (int start = 0; start < 3; ++start) {
        House house(ground);
        scrubbed(house);
        CHECK(ground.gpus.scrubs(FakeGpuHost::uuid(1)) == 1);
    }
    ground.gpus.lendOut();
    for (int start = 0; start < 2; ++start) {
        House house(ground);
        scrubbed(house);
        CHECK(ground.gpus.scrubs(FakeGpuHost::uuid(1)) == 2);
        CHECK(ground.gpus.scrubs(FakeGpuHost::uuid(2)) == 2);
    }
}

TEST_CASE("the lease of a sandbox that ended while no server ran is scrubbed away", "[unit][gpu]") {
    Ground ground;
    ground.gpus.have(FakeGpuHost::several(1));
    std::string sandbox;
    {
        House house(ground);
        house.declare("p", gpuSpec(1));
        scrubbed(house);
        REQUIRE(house.filled("p", 1));
        sandbox = house.warm.members("p").front().id;
    }
    ground.runtime.destroy(sandbox);
    House house(ground);
    house.recover();
    REQUIRE(house.filled("p", 1));
    CHECK(ground.gpus.scrubs(FakeGpuHost::uuid(1)) == 2);
}

TEST_CASE("a device with a fault is not given out, and spares do not keep it", "[unit][gpu]") {
    GpuPool filled(2);
    Ground& ground = filled.ground;
    House& house = filled.house;
    std::vector<pool::GpuDevice> devices = FakeGpuHost::several(2);
    devices[0].fault = "XID 79: the GPU has fallen off the bus";
    ground.gpus.have(devices);
    house.gpu_reconciler.look();
    house.loop.settle();
    CHECK(house.warm.counts("p").ready == 2);  // a fault may pass: one look is not enough
    house.gpu_reconciler.look();
    REQUIRE(house.settleUntil([&] { return gpuOf(house, 1).state == GpuState::Faulty; }));
    CHECK(house.warm.counts("p").ready == 1);
    CHECK(gpuOf(house, 1).reason == "XID 79: the GPU has fallen off the bus");
    ground.gpus.have(FakeGpuHost::several(2));
    house.gpu_reconciler.look();
    REQUIRE(house.filled("p", 2));
    CHECK(ground.gpus.scrubs(FakeGpuHost::uuid(1)) == 2);
}

TEST_CASE("a device that has gone is forgotten, and scrubbed when it comes back", "[unit][gpu]") {
    Ground ground;
    ground.gpus.have(FakeGpuHost::several(2));
    {
        House house(ground);
        scrubbed(house);
        ground.gpus.have(FakeGpuHost::several(1));
        house.gpu_reconciler.look();
        CHECK(house.gpu_service.list(house.who).size() == 1);
        // A driver that shows no device may only not have answered yet.
        ground.gpus.have({});
        house.gpu_reconciler.look();
    }
    House house(ground);
    ground.gpus.have(FakeGpuHost::several(2));
    house.recover();
    house.loop.settle();
    CHECK(ground.gpus.scrubs(FakeGpuHost::uuid(2)) == 2);
}

TEST_CASE("a tenant that opens and closes workspaces cannot send all GPUs to the scrub",
          "[unit][gpu]") {
    GpuPool filled(4);
    Ground& ground = filled.ground;
    House& house = filled.house;
    house.quotas.load(house.who.tenant, {.gpus = 1});
    ground.gpus.fallSilent(true);  // scrubs do not end
    for (int i = 0; i < 2; ++i) {
        house.workspaces.close(house.who, house.open(house.who, House::request()).id);
        REQUIRE(house.settleUntil(
            [&] { return states(house)[GpuState::Scrubbing] == static_cast<std::size_t>(i) + 1; }));
    }
    CHECK(codeOf([&] { house.open(house.who, House::request()); }) == ErrorCode::QuotaExceeded);
    ground.gpus.fallSilent(false);
    ground.manual.advance(31s);
    REQUIRE(house.settleUntil([&] { return states(house)[GpuState::Scrubbing] == 0; }));
    CHECK(house.open(house.who, House::request()).gpus.size() == 1);
}

TEST_CASE("a GPU whose workspace outlived a restart counts until it is scrubbed", "[unit][gpu]") {
    Ground ground;
    const std::string workspace = workspaceOfLifeBefore(ground);
    House house(ground);
    house.recover();
    house.quotas.load(house.who.tenant, {.gpus = 1});
    ground.gpus.fallSilent(true);
    house.workspaces.close(house.who, workspace);
    REQUIRE(house.settleUntil([&] { return states(house)[GpuState::Scrubbing] == 1; }));
    const std::shared_ptr<void> another = house.quotas.occupied(house.who.tenant, 1);
    CHECK(codeOf([&] { house.quotas.occupy(house.who.tenant, 1); }) == ErrorCode::QuotaExceeded);
}
