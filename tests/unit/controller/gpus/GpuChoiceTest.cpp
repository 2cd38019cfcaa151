#include <catch2/catch.hpp>
#include <optional>

#include "controller/gpus/GpuChoice.h"
#include "tests/support/House.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::controller::test;

TEST_CASE("a manifest that asks for more than the machine's devices is refused by its field",
          "[unit][gpu]") {
    const auto field = [](const GpuSpec& spec, const std::vector<pool::GpuDevice>& devices) {
        const std::optional<FieldError> wrong = refusalOf(spec, devices, "no GPU library");
        return wrong ? wrong->pointer + " " + wrong->reason : "";
    };
    const std::vector<pool::GpuDevice> two = FakeGpuHost::several(2);
    GpuSpec spec;
    CHECK(field(spec, {}).empty());
    spec.count = 3;
    CHECK(field(spec, {}) == "/spec/template/gpu/count must be 0: no GPU library");
    CHECK(field(spec, two) ==
          "/spec/template/gpu/count is 3, and only 2 fit; this machine has 2 of NVIDIA H100 80GB "
          "HBM3");
    spec.count = 2;
    CHECK(field(spec, two).empty());
    spec.products = {"A10"};
    CHECK(field(spec, two) ==
          "/spec/template/gpu/product no device matches; this machine has 2 of NVIDIA "
          "H100 80GB HBM3");
    spec.products = {"A10", "h100 80gb"};
    CHECK(field(spec, two).empty());
    spec.sharing = GpuSharing::Mig;
    CHECK(field(spec, two) ==
          "/spec/template/gpu/sharing Mig needs MIG instances; this machine has 2 of NVIDIA H100 "
          "80GB HBM3");
}
