#include <catch2/catch.hpp>
#include <optional>

#include "tests/unit/controller/gpus/GpuPool.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::controller::test;

namespace {

/// Declares a pool "q" without spares. Returns a request to it.
WorkspaceRequest waitingIn(House& house) {
    PoolSpec spec = gpuSpec(0);
    spec.on_empty = OnEmpty::Queue;
    house.declare("q", spec);
    WorkspaceRequest request = House::request();
    request.pool = "q";
    return request;
}

}  // namespace

TEST_CASE("a pool makes as many sandboxes as there are devices, and says what it lacks",
          "[unit][gpu]") {
    Ground ground;
    ground.gpus.have(FakeGpuHost::several(3));
    House house(ground);
    house.declare("p", gpuSpec(4));
    scrubbed(house);
    REQUIRE(house.filled("p", 3));
    house.pool_reconciler.reconcile("p");
    CHECK(house.warm.counts("p").total() == 3);
    const PoolStatus status = house.statuses.of("p");
    const auto condition =
        std::find_if(status.conditions.begin(), status.conditions.end(),
                     [](const PoolCondition& c) { return c.type == ConditionType::GpusAvailable; });
    REQUIRE(condition != status.conditions.end());
    CHECK_FALSE(condition->status);
    CHECK(condition->message == "needs 1 of 3 fitting GPUs, and 0 are free; 3 Leased");
    // A lack of devices is no failure: no create is delayed.
    CHECK(house.breaker.state("p").failures == 0);
}

TEST_CASE("a waiting claim goes before the spares of another pool", "[unit][gpu]") {
    GpuPool filled(1);
    House& house = filled.house;
    auto claim = house.claiming(house.who, waitingIn(house));
    REQUIRE(house.settleUntil([&] { return claim.run(); }));
    CHECK(claim.result().gpus.size() == 1);
    house.pool_reconciler.reconcile("p");
    CHECK(house.warm.counts("p").ready == 0);
}

TEST_CASE("a claim of more devices than are to be had takes none from other pools", "[unit][gpu]") {
    GpuPool filled(3);
    House& house = filled.house;
    WorkspaceRequest taken = House::request();
    taken.pool = "p";
    const std::string first = house.open(house.who, taken).id;
    house.open(house.who, taken);
    Stepped<std::vector<WorkspaceView>> claim{
        house.workspaces.createAll(house.who, waitingIn(house), 2), house.clock};
    CHECK_FALSE(claim.run());
    house.loop.settle();
    house.pool_reconciler.reconcile("q");
    house.loop.settle();
    CHECK(house.warm.counts("p").ready == 1);
    CHECK(house.warm.counts("q").total() == 0);

    house.workspaces.close(house.who, first);
    REQUIRE(house.settleUntil([&] { return claim.run(); }));
    CHECK(claim.result().size() == 2);
}

TEST_CASE("a changed template replaces sandboxes also where the old ones have all devices",
          "[unit][gpu]") {
    GpuPool filled(1);
    Ground& ground = filled.ground;
    House& house = filled.house;
    const std::string before = house.warm.members("p").front().template_hash;
    PoolSpec changed = gpuSpec(1);
    changed.limits.pids = 77;
    house.declare("p", changed);
    REQUIRE(house.settleUntil([&] {
        const std::vector<pool::Member> all = house.warm.members("p");
        return all.size() == 1 && all.front().phase == pool::Phase::Ready &&
               all.front().template_hash != before;
    }));
    CHECK(ground.gpus.scrubs(FakeGpuHost::uuid(1)) == 2);
}

TEST_CASE("a claim that waits for one product keeps no device of another from a pool",
          "[unit][gpu]") {
    Ground ground;
    ground.gpus.have({FakeGpuHost::device(1, "NVIDIA A100-SXM4-40GB")});
    House house(ground);
    house.gpu_reconciler.look();
    GpuSpec a100;
    a100.count = 1;
    a100.products = {"A100"};
    GpuSpec h100 = a100;
    h100.products = {"H100"};
    CHECK_FALSE(house.gpus.overlap(a100, h100));
    CHECK(house.gpus.overlap(a100, a100));
    CHECK_FALSE(house.gpus.overlap(GpuSpec(), h100));
}

TEST_CASE("products are preferred in their order, MIG instances and shared devices are apart",
          "[unit][gpu]") {
    Ground ground;
    std::vector<pool::GpuDevice> devices{FakeGpuHost::device(1, "NVIDIA A100-SXM4-40GB"),
                                         FakeGpuHost::device(2), FakeGpuHost::device(3)};
    devices[2].split = true;
    pool::GpuDevice instance{FakeGpuHost::uuid(4, "MIG-"), "NVIDIA H100 80GB HBM3", 10ULL << 30U,
                             FakeGpuHost::uuid(3), "1g.10gb"};
    devices.push_back(instance);
    ground.gpus.have(devices);
    House house(ground);
    scrubbed(house);
    GpuLedger& ledger = house.gpus;

    GpuSpec spec;
    spec.count = 1;
    spec.products = {"H100", "A100"};
    CHECK(ledger.take("sb_a", "p", spec).uuids == std::vector{FakeGpuHost::uuid(2)});
    CHECK(ledger.take("sb_b", "p", spec).uuids == std::vector{FakeGpuHost::uuid(1)});
    CHECK(ledger.take("sb_c", "p", spec).lack ==
          "needs 1 of 2 fitting GPUs, and 0 are free; 2 Leased");
    spec.sharing = GpuSharing::Mig;
    spec.products = {"1g.10gb"};
    CHECK(ledger.take("sb_d", "p", spec).uuids == std::vector{instance.uuid});

    ledger.drop("sb_a");
    GpuSpec shared;
    shared.count = 1;
    shared.sharing = GpuSharing::Shared;
    shared.shared_by = 2;
    CHECK(ledger.take("sb_e", "s", shared).uuids == std::vector{FakeGpuHost::uuid(2)});
    CHECK(ledger.take("sb_f", "s", shared).uuids == std::vector{FakeGpuHost::uuid(2)});
    CHECK(ledger.take("sb_g", "s", shared).uuids.empty());
    ledger.drop("sb_b");
    CHECK(ledger.take("sb_h", "p", shared, 1).uuids.empty());
    CHECK(ledger.take("sb_h", "p", shared).uuids == std::vector{FakeGpuHost::uuid(1)});
}
