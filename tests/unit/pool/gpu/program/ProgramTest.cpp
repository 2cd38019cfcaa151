#include <sys/wait.h>

#include <catch2/catch.hpp>
#include <cstdlib>

#include "pool/gpu/GpuMessages.h"
#include "tests/support/gpu/StandinGpus.h"

using namespace hearth;
using namespace hearth::pool;
using hearth::test::StandinGpus;

namespace {

struct Ended {
    int status = -1;
    std::string out;
    std::string err;
};

/// Runs hearth-gpu with these words, from a shell, on the stand-in libraries.
Ended hearthGpu(const std::string& words, const std::string& in = "") {
    const test::TempDir folder;
    test::writeText(folder.file("in"), in);
    const std::string line = std::string(HEARTH_GPU_PROGRAM) + " " + words + " <" +
                             folder.file("in") + " >" + folder.file("out") + " 2>" +
                             folder.file("err");
    const int status = std::system(line.c_str());
    return {WEXITSTATUS(status), test::readText(folder.file("out")),
            test::readText(folder.file("err"))};
}

const std::string kLibraries =
    std::string(" --library ") + HEARTH_NVML_STANDIN + " --cuda " + HEARTH_CUDA_STANDIN;

}  // namespace

TEST_CASE("wrong arguments of hearth-gpu are named, and it does nothing", "[unit][gpu]") {
    const auto refused = [](const std::string& words, const std::string& why) {
        const Ended ended = hearthGpu(words);
        CHECK(ended.status == 2);
        CHECK(ended.out.empty());
        CHECK_THAT(ended.err, Catch::StartsWith("hearth-gpu: " + why) && Catch::Contains("usage:"));
    };
    refused("", "a command is missing");
    refused("dance", "\"dance\" is not a command");
    refused("scrub", "scrub takes the uuid of a device, as look prints it, not \"\"");
    refused("scrub 0", "scrub takes the uuid of a device, as look prints it, not \"0\"");
    refused("look --libary x", "\"--libary\" is not a flag");
    refused("look --library", "--library lacks its value");
    for (const std::string bad : {"-1", "1s", "4294967296"}) {
        refused("look --process-wait " + bad,
                "--process-wait takes milliseconds, 0 to 4294967295, not \"" + bad + "\"");
    }
}

TEST_CASE("hearth-gpu looks once, or once for each line", "[unit][gpu]") {
    StandinGpus machine;
    machine.add("gpu0", StandinGpus::uuid(0));
    const Ended once = hearthGpu("look" + kLibraries);
    CHECK(once.status == 0);
    CHECK(gpu::decodeLook(once.out).devices.at(0).uuid == StandinGpus::uuid(0));
    const Ended twice = hearthGpu("watch" + kLibraries, "look\nlook\n");
    CHECK(twice.status == 0);
    CHECK(twice.out == once.out + once.out);
    machine.set("init", "9");
    const Ended none = hearthGpu("look" + kLibraries);
    CHECK(none.status == 1);
    CHECK_THAT(gpu::decodeLook(none.out).absence, Catch::Contains("Driver Not Loaded"));
}

TEST_CASE("hearth-gpu says in its status whether a scrub was clean", "[unit][gpu]") {
    StandinGpus machine;
    machine.add("gpu0", StandinGpus::uuid(0));
    machine.leaveTraces("gpu0");
    const Ended clean = hearthGpu("scrub " + StandinGpus::uuid(0) + kLibraries);
    CHECK(clean.status == 0);
    CHECK(gpu::decodeScrub(clean.out).bytes == StandinGpus::kMemory);
    CHECK(machine.blank("gpu0"));
    SECTION("also where the device runs no program that compares") {
        machine.set("gpu0/no-programs");
        machine.leaveTraces("gpu0");
        const Ended slow = hearthGpu("scrub " + StandinGpus::uuid(0) + kLibraries);
        CHECK(slow.status == 0);
        CHECK(gpu::decodeScrub(slow.out).bytes == StandinGpus::kMemory);
        CHECK(machine.blank("gpu0"));
    }
    const Ended unknown = hearthGpu("scrub " + StandinGpus::uuid(5) + kLibraries);
    CHECK(unknown.status == 1);
    CHECK_THAT(gpu::decodeScrub(unknown.out).why, Catch::StartsWith("nvmlDeviceGetHandleByUUID"));
}
