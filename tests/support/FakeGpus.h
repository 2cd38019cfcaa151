#pragma once

#include <vector>

#include "base/Error.h"
#include "controller/contract/Gpus.h"

namespace hearth::test {

/// The devices that a test puts in. A scrub of a condemned device makes it Scrubbing.
class FakeGpus final : public controller::Gpus {
public:
    std::vector<controller::GpuView> list(const controller::Principal&) const override {
        return devices;
    }
    controller::GpuView get(const controller::Principal&, const std::string& uuid) const override {
        for (const controller::GpuView& view : devices) {
            if (view.uuid == uuid) return view;
        }
        throw Error(ErrorCode::NotFound, "no GPU " + uuid);
    }
    controller::GpuView scrub(const controller::Principal&, const std::string& uuid) override {
        for (controller::GpuView& view : devices) {
            if (view.uuid != uuid) continue;
            if (view.state != controller::GpuState::Condemned) {
                throw Error(ErrorCode::Conflict, "it is not condemned");
            }
            view.state = controller::GpuState::Scrubbing;
            return view;
        }
        throw Error(ErrorCode::NotFound, "no GPU " + uuid);
    }
    std::vector<controller::GpuProduct> products() const override { return {}; }

    std::vector<controller::GpuView> devices{{"GPU-00000000-0000-0000-0000-000000000001",
                                              "NVIDIA H100 80GB HBM3",
                                              80ULL << 30U,
                                              "",
                                              "",
                                              controller::GpuState::Condemned,
                                              "a byte was not zero",
                                              {}}};
};

}  // namespace hearth::test
