#pragma once

#include <catch2/catch.hpp>
#include <map>
#include <string>

#include "controller/gpus/GpuLedger.h"
#include "tests/support/House.h"

namespace hearth::controller::test {

/// Returns warm sandboxes with `count` devices each. A claim that finds none ready fails.
inline PoolSpec gpuSpec(std::uint32_t warm, std::uint32_t count = 1) {
    PoolSpec spec = smallSpec(warm);
    spec.gpu.count = count;
    spec.on_empty = OnEmpty::Fail;
    spec.per_tenant = 1'000;
    return spec;
}

/// Returns the imitated device with this number.
inline GpuView gpuOf(House& house, unsigned number) {
    return house.gpu_service.get(house.who, FakeGpuHost::uuid(number));
}

/// Returns the number of devices in each state.
inline std::map<GpuState, std::size_t> states(House& house) {
    std::map<GpuState, std::size_t> counts;
    for (const GpuView& view : house.gpu_service.list(house.who)) ++counts[view.state];
    return counts;
}

/// Waits until the plane has found and scrubbed the devices and pools have taken theirs.
inline void scrubbed(House& house) {
    house.gpu_reconciler.look();
    REQUIRE(house.settleUntil([&] { return states(house)[GpuState::Scrubbing] == 0; }));
}

/// A pool with one device for each of its warm sandboxes, which are ready.
struct GpuPool {
    explicit GpuPool(unsigned devices) {
        ground.gpus.have(FakeGpuHost::several(devices));
        house.declare("p", gpuSpec(devices));
        scrubbed(house);
        REQUIRE(house.filled("p", devices));
    }

    Ground ground;
    House house{ground};
};

/// Opens a workspace with one of two devices, and ends the server. Returns the workspace's id.
inline std::string workspaceOfLifeBefore(Ground& ground) {
    ground.gpus.have(FakeGpuHost::several(2));
    House house(ground);
    house.declare("p", gpuSpec(2));
    scrubbed(house);
    REQUIRE(house.filled("p", 2));
    return house.open(house.who, House::request()).id;
}

}  // namespace hearth::controller::test
