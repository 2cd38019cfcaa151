#include <catch2/catch.hpp>

#include "controller/gpus/GpuChoice.h"
#include "controller/gpus/GpuLedger.h"
#include "tests/support/House.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::controller::test;

namespace {

PoolSpec deviceSpec(std::uint32_t warm, std::uint32_t count) {
    PoolSpec spec = pulledSpec(warm);
    spec.gpu.count = count;
    return spec;
}

GpuSpec kindOf(GpuSharing sharing, std::vector<std::string> products = {}) {
    GpuSpec spec;
    spec.count = 1;
    spec.sharing = sharing;
    spec.products = std::move(products);
    return spec;
}

}  // namespace

TEST_CASE("the resource of devices in a cluster follows from their kind", "[unit][gpu]") {
    const GpuSpec whole = kindOf(GpuSharing::Exclusive);
    const GpuSpec mig = kindOf(GpuSharing::Mig, {"1g.10gb"});
    CHECK(clusterResourceOf(whole) == "nvidia.com/gpu");
    CHECK(clusterResourceOf(kindOf(GpuSharing::Shared)) == "nvidia.com/gpu.shared");
    CHECK(clusterResourceOf(mig) == "nvidia.com/mig-1g.10gb");
    CHECK_FALSE(refusalInCluster(whole));
    CHECK_FALSE(refusalInCluster(mig));
    CHECK(refusalInCluster(kindOf(GpuSharing::Exclusive, {"H100"})));
    CHECK(refusalInCluster(kindOf(GpuSharing::Mig)));
}

TEST_CASE("in a cluster sandboxes ask for devices, whatever this machine has", "[unit][gpu]") {
    Ground ground;
    ground.runtime.beCluster();
    House house(ground);
    house.declare("p", deviceSpec(2, 2));
    house.recover();
    REQUIRE(house.filled("p", 2));
    const WorkspaceView workspace = house.open(house.who, House::request());
    CHECK(workspace.gpus == std::vector<std::string>(2, "nvidia.com/gpu"));
    CHECK(house.gpu_service.list(house.who).empty());
}

TEST_CASE("after a restart a workspace in a cluster still counts its devices", "[unit][gpu]") {
    Ground ground;
    ground.runtime.beCluster();
    std::string id;
    {
        House house(ground);
        house.declare("p", deviceSpec(1, 1));
        house.recover();
        REQUIRE(house.filled("p", 1));
        id = house.open(house.who, House::request()).id;
    }
    House house(ground);
    house.declare("p", deviceSpec(1, 1));
    house.recover();
    const WorkspaceView again = house.workspaces.get(house.who, id);
    CHECK(again.gpus == std::vector<std::string>{"nvidia.com/gpu"});
}
