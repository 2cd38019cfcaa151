#include <catch2/catch.hpp>

#include "pool/gpu/nvml/NvmlLook.h"
#include "tests/support/gpu/StandinGpus.h"

using namespace hearth;
using namespace hearth::pool;
using hearth::test::StandinGpus;

namespace {

constexpr const char* kStandin = HEARTH_NVML_STANDIN;

GpuDevice only(const gpu::GpuLook& look) {
    REQUIRE(look.devices.size() == 1);
    return look.devices[0];
}

std::string failureOf(const std::string& library) {
    try {
        const gpu::Nvml nvml(library);
    } catch (const std::runtime_error& e) {
        return e.what();
    }
    return "";
}

}  // namespace

TEST_CASE("a look lists each GPU with its uuid, product and memory", "[unit][gpu]") {
    StandinGpus machine;
    machine.add("gpu0", StandinGpus::uuid(0), "NVIDIA H100 80GB HBM3");
    machine.add("gpu1", StandinGpus::uuid(1));
    gpu::Nvml nvml(kStandin);
    const gpu::GpuLook look = gpu::NvmlLook(nvml).look();
    CHECK(look.absence.empty());
    REQUIRE(look.devices.size() == 2);
    CHECK(look.devices[0] ==
          GpuDevice{StandinGpus::uuid(0), "NVIDIA H100 80GB HBM3", StandinGpus::kMemory});
    CHECK(look.devices[1].uuid == StandinGpus::uuid(1));
}

TEST_CASE("a GPU in MIG mode is split, and its instances have its product and their own profile",
          "[unit][gpu]") {
    StandinGpus machine;
    machine.add("gpu0", StandinGpus::uuid(0), "NVIDIA A100-SXM4-40GB");
    machine.set("gpu0/split");
    machine.add("gpu0/mig0", StandinGpus::uuid(1, "MIG"), "NVIDIA A100-SXM4-40GB MIG 3g.20gb");
    machine.add("gpu0/mig1", StandinGpus::uuid(2, "MIG"), "NVIDIA A100-SXM4-40GB MIG 1g.5gb");
    gpu::Nvml nvml(kStandin);
    const gpu::GpuLook look = gpu::NvmlLook(nvml).look();
    REQUIRE(look.devices.size() == 3);
    CHECK(look.devices[0].split);
    CHECK_FALSE(look.devices[1].split);
    CHECK(look.devices[1].product == "NVIDIA A100-SXM4-40GB");
    CHECK(look.devices[1].profile == "3g.20gb");
    CHECK(look.devices[1].parent == StandinGpus::uuid(0));
    CHECK(look.devices[2].profile == "1g.5gb");
}

TEST_CASE("memory errors, pending pages and failed rows are faults, and their absence is none",
          "[unit][gpu]") {
    StandinGpus machine;
    machine.add("gpu0", StandinGpus::uuid(0));
    gpu::Nvml nvml(kStandin);
    gpu::NvmlLook looks(nvml);
    machine.set("gpu0/ecc", "0");
    CHECK(only(looks.look()).fault.empty());
    machine.set("gpu0/ecc", "3");
    CHECK_THAT(only(looks.look()).fault, Catch::StartsWith("3 uncorrected memory errors (ECC)"));
    machine.clear("gpu0/ecc");
    machine.set("gpu0/retired");
    CHECK_THAT(only(looks.look()).fault, Catch::StartsWith("pages of its memory wait"));
    machine.set("gpu0/remap");
    CHECK_THAT(only(looks.look()).fault, Catch::Contains("pages of its memory wait") &&
                                             Catch::Contains("could not be remapped"));
}

TEST_CASE("a question that the user may not ask is no fault of the device", "[unit][gpu]") {
    StandinGpus machine;
    machine.add("gpu0", StandinGpus::uuid(0));
    machine.set("gpu0/ecc", "3");
    gpu::Nvml nvml(kStandin);
    gpu::NvmlLook looks(nvml);
    machine.set("no-permission");
    CHECK(only(looks.look()).fault.empty());
    machine.clear("no-permission");
    CHECK_FALSE(only(looks.look()).fault.empty());
}

TEST_CASE("a lost GPU stays in the list, as faulty, also if it can only be named from memory",
          "[unit][gpu]") {
    StandinGpus machine;
    machine.add("gpu0", StandinGpus::uuid(0));
    machine.add("gpu1", StandinGpus::uuid(1));
    gpu::Nvml nvml(kStandin);
    gpu::NvmlLook looks(nvml);
    REQUIRE(looks.look().devices.size() == 2);
    machine.set("gpu0/lost");
    const gpu::GpuLook look = looks.look();
    REQUIRE(look.devices.size() == 2);
    CHECK(look.devices[0].uuid == StandinGpus::uuid(0));
    CHECK_THAT(look.devices[0].fault, Catch::Contains("has lost it") && Catch::Contains("(15)"));
    CHECK(look.devices[1].fault.empty());
    machine.clear("gpu0/lost");
    CHECK(looks.look().devices[0].fault.empty());
}

TEST_CASE("a GPU that was lost before the first look is the reason that there is none",
          "[unit][gpu]") {
    StandinGpus machine;
    machine.add("gpu0", StandinGpus::uuid(0));
    machine.set("gpu0/lost");
    gpu::Nvml nvml(kStandin);
    const gpu::GpuLook look = gpu::NvmlLook(nvml).look();
    CHECK(look.devices.empty());
    CHECK_THAT(look.absence, Catch::StartsWith("GPU 0: ") && Catch::Contains("GPU is lost"));
}

TEST_CASE("a critical XID condemns its GPU for good, and one of a program does not",
          "[unit][gpu]") {
    StandinGpus machine;
    machine.add("gpu0", StandinGpus::uuid(0));
    machine.add("gpu1", StandinGpus::uuid(1));
    gpu::Nvml nvml(kStandin);
    gpu::NvmlLook looks(nvml);
    for (const char* of_a_program : {"13", "31", "43", "45", "68", "109"}) {
        machine.set("gpu0/xid", of_a_program);
        CHECK(looks.look().lasting.empty());
        CHECK_FALSE(machine.has("gpu0/xid"));  // the look has read it
    }
    machine.set("gpu1/xid", "79");
    for (int i = 0; i < 2; ++i) {
        const gpu::GpuLook look = looks.look();
        REQUIRE(look.lasting.size() == 1);
        CHECK_THAT(look.lasting.at(StandinGpus::uuid(1)), Catch::StartsWith("XID 79"));
    }
}

TEST_CASE("an XID of one MIG instance leaves the other alone, and one of the GPU is the GPU's",
          "[unit][gpu]") {
    StandinGpus machine;
    machine.add("gpu0", StandinGpus::uuid(0));
    machine.set("gpu0/split");
    machine.add("gpu0/mig0", StandinGpus::uuid(1, "MIG"));
    machine.set("gpu0/mig0/instance", "3");
    machine.add("gpu0/mig1", StandinGpus::uuid(2, "MIG"));
    machine.set("gpu0/mig1/instance", "4");
    gpu::Nvml nvml(kStandin);
    gpu::NvmlLook looks(nvml);
    machine.set("gpu0/xid", "94 4");
    const gpu::GpuLook one = looks.look();
    CHECK(one.lasting.size() == 1);
    CHECK(one.lasting.contains(StandinGpus::uuid(2, "MIG")));
    machine.set("gpu0/xid", "79");
    const gpu::GpuLook both = looks.look();
    CHECK(both.lasting.size() == 2);
    CHECK(both.lasting.contains(StandinGpus::uuid(0)));
}

TEST_CASE("two devices of one uuid, and a uuid of no known form, are faults", "[unit][gpu]") {
    StandinGpus machine;
    machine.add("gpu0", StandinGpus::uuid(0));
    machine.add("gpu1", StandinGpus::uuid(0));
    machine.add("gpu2", "MIG-GPU-00000000-1111-2222-3333-444444444444/1/0");
    gpu::Nvml nvml(kStandin);
    const gpu::GpuLook look = gpu::NvmlLook(nvml).look();
    REQUIRE(look.devices.size() == 2);
    CHECK(look.devices[0].fault == "the driver lists two devices with this uuid");
    CHECK_THAT(look.devices[1].fault, Catch::StartsWith("its uuid is not of the form"));
}

TEST_CASE("a library that is missing, empty or does not start is named with what to do",
          "[unit][gpu]") {
    StandinGpus machine;
    CHECK_THAT(failureOf("libnvidia-ml.so.none"),
               Catch::Contains("looked for as libnvidia-ml.so.none") &&
                   Catch::Contains("install NVIDIA's driver") && Catch::Contains("--gpu-library"));
    CHECK_THAT(failureOf(HEARTH_EMPTY_STANDIN), Catch::Contains("has no function nvmlInit_v2"));
    machine.set("init", "9");
    CHECK_THAT(failureOf(kStandin), Catch::Contains("nvmlInit_v2: Driver Not Loaded (9)"));
    machine.clear("init");
    CHECK(failureOf(kStandin).empty());
}

TEST_CASE("a driver without a GPU says so", "[unit][gpu]") {
    StandinGpus machine;
    gpu::Nvml nvml(kStandin);
    CHECK(gpu::NvmlLook(nvml).look().absence == "NVIDIA's driver is loaded and finds no GPU");
}
