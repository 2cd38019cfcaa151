#include <sys/wait.h>

#include <catch2/catch.hpp>

#include "pool/gpu/NvidiaGpus.h"
#include "tests/support/gpu/StandinGpus.h"

using namespace hearth;
using namespace hearth::pool;
using hearth::test::StandinGpus;
using std::chrono::milliseconds;

namespace {

constexpr auto kHung = milliseconds(1500);        // longer than a healthy look on a busy machine
constexpr auto kSoon = std::chrono::seconds(30);  // never waited for in full

GpuOptions quick() {
    GpuOptions options;
    options.helper.program = HEARTH_GPU_PROGRAM;
    options.helper.library = HEARTH_NVML_STANDIN;
    options.helper.cuda = HEARTH_CUDA_STANDIN;
    options.helper.process_wait = milliseconds(150);
    options.look_every = std::chrono::hours(1);  // a test starts each look
    options.absent_look_every = std::chrono::hours(1);
    options.look_limit = std::chrono::seconds(20);
    options.scrub_timeout = std::chrono::seconds(60);
    return options;
}

/// The GPUs of a stand-in machine.
class Gpus {
public:
    explicit Gpus(const GpuOptions& options = quick())
        : host(options, gpu::GpuHelper::start(options.helper)) {}

    GpuDevice first() {
        const std::vector<GpuDevice> all = host.devices();
        REQUIRE_FALSE(all.empty());
        return all[0];
    }

    NvidiaGpus host;
};

StandinGpus& withOne(StandinGpus& machine) {
    machine.add("gpu0", StandinGpus::uuid(0));
    return machine;
}

}  // namespace

TEST_CASE("the GPUs are known when the host starts, and a new fault after the next look",
          "[unit][gpu]") {
    StandinGpus machine;
    withOne(machine);
    Gpus gpus;
    CHECK(gpus.host.absence().empty());
    CHECK(gpus.first() ==
          GpuDevice{StandinGpus::uuid(0), "NVIDIA Standin 80MB", StandinGpus::kMemory});
    machine.set("gpu0/ecc", "1");
    REQUIRE(gpus.host.refresh(kSoon));
    CHECK_THAT(gpus.first().fault, Catch::Contains("ECC"));
    machine.clear("gpu0/ecc");
    REQUIRE(gpus.host.refresh(kSoon));
    CHECK(gpus.first().fault.empty());
}

TEST_CASE("looks repeat without a request", "[unit][gpu]") {
    StandinGpus machine;
    withOne(machine);
    GpuOptions options = quick();
    options.look_every = milliseconds(20);
    Gpus gpus(options);
    machine.set("gpu0/retired");
    CHECK(test::eventually([&] { return !gpus.first().fault.empty(); }));
}

TEST_CASE("without a library there are no GPUs, and the reason says what was looked for",
          "[unit][gpu]") {
    GpuOptions options = quick();
    options.helper.library = "libnvidia-ml.so.none";
    Gpus gpus(options);
    CHECK(gpus.host.devices().empty());
    CHECK_THAT(gpus.host.absence(), Catch::Contains("libnvidia-ml.so.none"));
    const GpuScrub scrub = gpus.host.scrub(StandinGpus::uuid(0));
    CHECK_FALSE(scrub.clean);
    CHECK_THAT(scrub.why, Catch::Contains("this machine has no GPU " + StandinGpus::uuid(0)) &&
                              Catch::Contains("libnvidia-ml.so.none"));
}

TEST_CASE("without its helper program there are no GPUs, and the reason names it", "[unit][gpu]") {
    GpuOptions options = quick();
    options.helper.program = "/nowhere/hearth-gpu";
    Gpus gpus(options);
    CHECK(gpus.host.devices().empty());
    CHECK_THAT(gpus.host.absence(), Catch::Contains("/nowhere/hearth-gpu"));
}

TEST_CASE("a driver that is loaded later is found", "[unit][gpu]") {
    StandinGpus machine;
    withOne(machine);
    machine.set("init", "9");
    Gpus gpus;
    CHECK_THAT(gpus.host.absence(), Catch::Contains("Driver Not Loaded"));
    machine.clear("init");
    REQUIRE(gpus.host.refresh(kSoon));
    CHECK(gpus.host.devices().size() == 1);
    CHECK(gpus.host.absence().empty());
}

TEST_CASE("a GPU that the driver lists no more stays, as faulty; a MIG instance goes",
          "[unit][gpu]") {
    StandinGpus machine;
    withOne(machine);
    machine.add("gpu1", StandinGpus::uuid(1));
    machine.set("gpu0/split");
    machine.add("gpu0/mig0", StandinGpus::uuid(2, "MIG"));
    Gpus gpus;
    REQUIRE(gpus.host.devices().size() == 3);
    std::filesystem::rename(std::string(std::getenv("HEARTH_GPU_STANDIN")) + "/gpu1",
                            std::string(std::getenv("HEARTH_GPU_STANDIN")) + "/gone");
    std::filesystem::remove_all(std::string(std::getenv("HEARTH_GPU_STANDIN")) + "/gpu0/mig0");
    REQUIRE(gpus.host.refresh(kSoon));
    const std::vector<GpuDevice> left = gpus.host.devices();
    REQUIRE(left.size() == 2);
    CHECK(left[0].fault.empty());
    CHECK(left[1].uuid == StandinGpus::uuid(1));
    CHECK(left[1].fault == "the driver does not list it any more");
}

TEST_CASE("a fault of a GPU is a fault of its MIG instances", "[unit][gpu]") {
    StandinGpus machine;
    withOne(machine);
    machine.set("gpu0/split");
    machine.add("gpu0/mig0", StandinGpus::uuid(1, "MIG"));
    Gpus gpus;
    const auto instance = [&gpus] {
        for (const GpuDevice& device : gpus.host.devices()) {
            if (!device.parent.empty()) return device.fault;
        }
        return std::string("there is none");
    };
    CHECK(instance() == "");
    machine.set("gpu0/lost");  // then its instances cannot be listed
    REQUIRE(gpus.host.refresh(kSoon));
    CHECK_THAT(instance(), Catch::StartsWith("its GPU: the driver has lost it"));
    machine.clear("gpu0/lost");
    machine.set("gpu0/retired");
    REQUIRE(gpus.host.refresh(kSoon));
    CHECK_THAT(instance(), Catch::StartsWith("its GPU: pages of its memory"));
    machine.clear("gpu0/retired");
    machine.set("gpu0/xid", "79");
    REQUIRE(gpus.host.refresh(kSoon));
    CHECK_THAT(instance(), Catch::StartsWith("its GPU: XID 79"));
}

TEST_CASE("a driver that hangs makes every GPU faulty, blocks nobody, and may come back",
          "[unit][gpu]") {
    StandinGpus machine;
    withOne(machine);
    GpuOptions options = quick();
    options.look_limit = kHung;
    Gpus gpus(options);
    machine.set("hang-look");
    CHECK_FALSE(gpus.host.refresh(milliseconds(50)));
    CHECK(test::eventually([&] { return !gpus.first().fault.empty(); }));
    CHECK_THAT(gpus.first().fault, Catch::StartsWith("the driver does not answer since 20"));
    const GpuScrub scrub = gpus.host.scrub(StandinGpus::uuid(0));
    CHECK_THAT(scrub.why, Catch::StartsWith("the driver does not answer since"));
    machine.clear("hang-look");
    REQUIRE(gpus.host.refresh(kSoon));
    CHECK(gpus.first().fault.empty());
}

TEST_CASE("a look that never ends is given up, and the next one begins anew", "[unit][gpu]") {
    StandinGpus machine;
    withOne(machine);
    GpuOptions options = quick();
    options.look_limit = kHung;
    options.give_up_look = milliseconds(100);
    Gpus gpus(options);
    machine.set("hang-once");
    machine.set("gpu0/ecc", "1");
    REQUIRE(gpus.host.refresh(kSoon));
    CHECK_FALSE(machine.has("hang-once"));
    CHECK_THAT(gpus.first().fault, Catch::StartsWith("1 uncorrected"));
}

TEST_CASE("a driver that hangs in each new look is silent since the first of them", "[unit][gpu]") {
    StandinGpus machine;
    withOne(machine);
    GpuOptions options = quick();
    options.look_limit = kHung;
    options.give_up_look = milliseconds(50);
    options.look_every = milliseconds(10);
    Gpus gpus(options);
    machine.set("hang-look");
    REQUIRE(test::eventually([&] { return !gpus.first().fault.empty(); }));
    const std::string fault = gpus.first().fault;
    CHECK_THAT(fault, Catch::StartsWith("the driver does not answer since 20"));
    REQUIRE(gpus.host.refresh(kSoon));  // this look was given up, too
    CHECK(gpus.first().fault == fault);
    machine.clear("hang-look");
    CHECK(test::eventually([&] { return gpus.first().fault.empty(); }));
}

TEST_CASE("the host ends though the driver hangs, and so does its helper", "[unit][gpu]") {
    StandinGpus machine;
    withOne(machine);
    machine.set("hang-look");
    pid_t helper = -1;
    {
        GpuOptions options = quick();
        options.look_limit = milliseconds(50);
        gpu::GpuHelper::Started started = gpu::GpuHelper::start(options.helper);
        helper = started.pid;
        NvidiaGpus gpus(options, std::move(started));
        CHECK(gpus.devices().empty());
    }
    CHECK(::waitpid(helper, nullptr, WNOHANG) == -1);  // the host has waited for it
}

TEST_CASE("a library that ends its process costs a look and not the server", "[unit][gpu]") {
    StandinGpus machine;
    withOne(machine);
    Gpus gpus;
    machine.set("crash-look");
    REQUIRE(gpus.host.refresh(kSoon));
    CHECK_THAT(gpus.first().fault, Catch::Contains("ended without an answer"));
    machine.clear("crash-look");
    REQUIRE(gpus.host.refresh(kSoon));
    CHECK(gpus.first().fault.empty());
}

TEST_CASE("a critical XID lasts, though the program that heard it has ended", "[unit][gpu]") {
    StandinGpus machine;
    withOne(machine);
    Gpus gpus;
    machine.set("gpu0/xid", "79");
    REQUIRE(gpus.host.refresh(kSoon));
    CHECK_THAT(gpus.first().fault, Catch::StartsWith("XID 79"));
    machine.set("crash-look");
    REQUIRE(gpus.host.refresh(kSoon));
    machine.clear("crash-look");
    REQUIRE(gpus.host.refresh(kSoon));
    CHECK_THAT(gpus.first().fault, Catch::StartsWith("XID 79"));
}

TEST_CASE("after a scrub no byte of the last tenant is left; without one every byte is",
          "[unit][gpu]") {
    StandinGpus machine;
    withOne(machine);
    machine.add("gpu1", StandinGpus::uuid(1));
    machine.leaveTraces("gpu0");
    machine.leaveTraces("gpu1");
    Gpus gpus;
    const GpuScrub scrub = gpus.host.scrub(StandinGpus::uuid(0));
    CHECK(scrub.why == "");
    CHECK(scrub.clean);
    CHECK(scrub.bytes == StandinGpus::kMemory);
    CHECK(machine.traces("gpu0") == 0);
    CHECK(machine.blank("gpu0"));
    CHECK(machine.traces("gpu1") == StandinGpus::kMemory / 32);  // the control: it was not scrubbed
}

TEST_CASE("a MIG instance is scrubbed by itself, and a GPU that is split is not", "[unit][gpu]") {
    StandinGpus machine;
    withOne(machine);
    machine.set("gpu0/split");
    for (const int i : {0, 1}) {
        const std::string name = "gpu0/mig" + std::to_string(i);
        machine.add(name, StandinGpus::uuid(i + 1, "MIG"));
        machine.leaveTraces(name);
    }
    Gpus gpus;
    CHECK_THAT(gpus.host.scrub(StandinGpus::uuid(0)).why, Catch::Contains("MIG mode"));
    CHECK(gpus.host.scrub(StandinGpus::uuid(2, "MIG")).clean);
    CHECK(machine.blank("gpu0/mig1"));
    CHECK(machine.traces("gpu0/mig0") == StandinGpus::kMemory / 32);
}

TEST_CASE("a device whose driver gives memory in pieces only is scrubbed in pieces",
          "[unit][gpu]") {
    StandinGpus machine;
    withOne(machine);
    machine.leaveTraces("gpu0");
    machine.set("gpu0/largest", std::to_string(3 << 20));
    Gpus gpus;
    const GpuScrub scrub = gpus.host.scrub(StandinGpus::uuid(0));
    CHECK(scrub.clean);
    CHECK(machine.blank("gpu0"));
}

TEST_CASE("a scrub that covers too little of the memory is not clean and says how much",
          "[unit][gpu]") {
    StandinGpus machine;
    withOne(machine);
    machine.set("gpu0/limit", std::to_string(71 << 20));
    Gpus gpus;
    const GpuScrub scrub = gpus.host.scrub(StandinGpus::uuid(0));
    CHECK_FALSE(scrub.clean);
    CHECK(scrub.bytes == 71ULL << 20U);
    CHECK(scrub.why ==
          "only 71 MiB of 80 MiB free memory could be overwritten; at least 90 % must be");
    machine.set("gpu0/limit", std::to_string(72 << 20));
    CHECK(gpus.host.scrub(StandinGpus::uuid(0)).clean);
}

TEST_CASE("memory that is held though no process uses the device is not clean", "[unit][gpu]") {
    StandinGpus machine;
    withOne(machine);
    machine.set("gpu0/free", std::to_string(40 << 20));
    Gpus gpus;
    CHECK_THAT(gpus.host.scrub(StandinGpus::uuid(0)).why,
               Catch::StartsWith("only 40 MiB of its 80 MiB are free"));
}

TEST_CASE("a process that stays on the device is named, and nothing is written under it",
          "[unit][gpu]") {
    StandinGpus machine;
    withOne(machine);
    machine.leaveTraces("gpu0");
    Gpus gpus;
    for (const std::string kind : {"", " g"}) {
        machine.set("gpu0/processes", std::to_string(::getpid()) + kind + "\n");
        const GpuScrub scrub = gpus.host.scrub(StandinGpus::uuid(0));
        CHECK_FALSE(scrub.clean);
        CHECK_THAT(scrub.why, Catch::StartsWith("still used after") &&
                                  Catch::Contains(std::to_string(::getpid()) + " (unit_gpu)"));
        CHECK(machine.traces("gpu0") == StandinGpus::kMemory / 32);
    }
    machine.set("gpu0/processes", "");
    CHECK(gpus.host.scrub(StandinGpus::uuid(0)).clean);
}

TEST_CASE("writes that fail, and memory that does not hold them, are not clean", "[unit][gpu]") {
    StandinGpus machine;
    withOne(machine);
    Gpus gpus;
    machine.set("gpu0/fill-fails");
    CHECK_THAT(gpus.host.scrub(StandinGpus::uuid(0)).why, Catch::StartsWith("cuMemsetD32_v2: "));
    machine.clear("gpu0/fill-fails");
    machine.set("gpu0/mismatch");
    CHECK_THAT(
        gpus.host.scrub(StandinGpus::uuid(0)).why,
        Catch::Contains("does not hold what is written") && Catch::Contains("1 of 8388608 words"));
    machine.clear("gpu0/mismatch");
    CHECK(gpus.host.scrub(StandinGpus::uuid(0)).clean);
}

TEST_CASE("a scrub that dies in the middle is not clean, and the next one is complete",
          "[unit][gpu]") {
    StandinGpus machine;
    withOne(machine);
    machine.leaveTraces("gpu0");
    Gpus gpus;
    machine.set("gpu0/crash-scrub");
    const GpuScrub killed = gpus.host.scrub(StandinGpus::uuid(0));
    CHECK_FALSE(killed.clean);
    CHECK(killed.why == "the scrub's program ended without a result");
    CHECK(machine.traces("gpu0") > 0);  // the rest of the traces
    machine.clear("gpu0/crash-scrub");
    CHECK(gpus.host.scrub(StandinGpus::uuid(0)).clean);
    CHECK(machine.blank("gpu0"));
}

TEST_CASE("a scrub that hangs is killed at its deadline", "[unit][gpu]") {
    StandinGpus machine;
    withOne(machine);
    GpuOptions options = quick();
    options.scrub_timeout = milliseconds(2000);
    Gpus gpus(options);
    machine.set("gpu0/hang-scrub");
    CHECK(gpus.host.scrub(StandinGpus::uuid(0)).why ==
          "the scrub had not ended after 2 s and was killed");
}

TEST_CASE("the end of the host ends a scrub that hangs, as not clean", "[unit][gpu]") {
    StandinGpus machine;
    withOne(machine);
    Gpus gpus;
    machine.set("gpu0/hang-scrub");
    GpuScrub scrub{true, "", 0};
    std::jthread scrubber([&] { scrub = gpus.host.scrub(StandinGpus::uuid(0)); });
    REQUIRE(test::eventually([&] { return machine.has("gpu0/memory.bin"); }));
    GpuScrub second = gpus.host.scrub(StandinGpus::uuid(0));
    CHECK(second.why == "another scrub of it runs");
    gpus.host.stop();
    scrubber.join();
    CHECK_FALSE(scrub.clean);
    CHECK(scrub.why == "the server ends");
    CHECK(gpus.host.scrub(StandinGpus::uuid(0)).why == "the server ends");
}

TEST_CASE("a fault that a scrub brings out makes it not clean", "[unit][gpu]") {
    StandinGpus machine;
    withOne(machine);
    Gpus gpus;
    machine.set("gpu0/ecc", "1");  // not read before the scrub has ended
    const GpuScrub scrub = gpus.host.scrub(StandinGpus::uuid(0));
    CHECK_FALSE(scrub.clean);
    CHECK(scrub.bytes == StandinGpus::kMemory);
    CHECK_THAT(scrub.why, Catch::Contains("ECC"));
}

TEST_CASE("a scrub of an unknown GPU is refused with a message", "[unit][gpu]") {
    StandinGpus machine;
    withOne(machine);
    Gpus gpus;
    CHECK(gpus.host.scrub("gpu0").why == "\"gpu0\" is not a GPU's uuid");
    CHECK(gpus.host.scrub(StandinGpus::uuid(7)).why ==
          "this machine has no GPU " + StandinGpus::uuid(7));
    GpuOptions options = quick();
    options.helper.cuda = "libcuda.so.none";
    Gpus without_cuda(options);
    CHECK_THAT(without_cuda.host.scrub(StandinGpus::uuid(0)).why,
               Catch::Contains("libcuda.so.none") && Catch::Contains("libcuda1"));
}

TEST_CASE("without the name of a library no helper starts and no GPU is looked for",
          "[unit][gpu]") {
    GpuOptions options = quick();
    options.helper.library = gpu::kNoLibrary;
    gpu::GpuHelper::Started helper = gpu::GpuHelper::start(options.helper);
    CHECK(helper.pid == -1);
    const std::unique_ptr<GpuHost> host = makeGpuHost(options, std::move(helper));
    CHECK(host->devices().empty());
    CHECK(host->absence() == "GPUs are not looked for: the setting gpuLibrary is none");
    CHECK_FALSE(host->scrub(StandinGpus::uuid(0)).clean);
}
