#include <catch2/catch.hpp>

#include "api/cli/doctor/GpuChecks.h"

using namespace hearth;
using namespace hearth::cli;

TEST_CASE("no GPU is no failure, and doctor says why there is none", "[unit][cli]") {
    const Finding none = judgeGpus({}, "the library is not there");
    CHECK(none.level == Level::Ok);
    CHECK(none.message == "none: the library is not there; pools without GPUs do not need them");
    CHECK(none.fix.empty());
}

TEST_CASE("doctor lists GPUs with product, memory and MIG profile, and warns of a fault",
          "[unit][cli]") {
    std::vector<pool::GpuDevice> devices = {
        {"GPU-1", "NVIDIA A100", 40ULL << 30U, "", "", true, ""},
        {"MIG-1", "NVIDIA A100", 9984ULL << 20U, "GPU-1", "2g.10gb", false, ""},
    };
    const Finding healthy = judgeGpus(devices, "");
    CHECK(healthy.level == Level::Ok);
    CHECK(healthy.message ==
          "1: NVIDIA A100 (40 GiB, GPU-1, in MIG mode), NVIDIA A100 MIG 2g.10gb (9.75 GiB, MIG-1)");
    devices.push_back({"GPU-2", "NVIDIA T4", 16ULL << 30U, "", "", false, "XID 79"});
    const Finding faulty = judgeGpus(devices, "");
    CHECK(faulty.level == Level::Warn);
    CHECK(faulty.message.starts_with("2: "));
    CHECK(faulty.message.ends_with("NVIDIA T4 (16 GiB, GPU-2, FAULTY: XID 79)"));
    CHECK_FALSE(faulty.fix.empty());
}
