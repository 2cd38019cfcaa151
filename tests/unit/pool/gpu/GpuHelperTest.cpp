#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <set>

#include "pool/gpu/GpuHelper.h"
#include "pool/gpu/GpuMessages.h"
#include "tests/support/gpu/StandinGpus.h"

using namespace hearth;
using namespace hearth::pool;
using hearth::test::StandinGpus;
using Heard = gpu::GpuProgram::Heard;

namespace {

gpu::HelperOptions standins() {
    gpu::HelperOptions options;
    options.program = HEARTH_GPU_PROGRAM;
    options.library = HEARTH_NVML_STANDIN;
    options.cuda = HEARTH_CUDA_STANDIN;
    return options;
}

std::unique_ptr<gpu::GpuHelper> makeHelper(const gpu::HelperOptions& options = standins()) {
    return std::make_unique<gpu::GpuHelper>(gpu::GpuHelper::start(options), options.program);
}

auto soon() {
    return std::chrono::steady_clock::now() + std::chrono::seconds(30);
}

std::string refusal(gpu::GpuHelper& helper, const std::string& request) {
    try {
        helper.spawn(request);
    } catch (const std::runtime_error& e) {
        return e.what();
    }
    return "";
}

}  // namespace

TEST_CASE("programs of the helper end with it, though a driver hangs in them", "[unit][gpu]") {
    StandinGpus machine;
    machine.add("gpu0", StandinGpus::uuid(0));
    machine.set("gpu0/hang-scrub");
    machine.set("hang-look");
    auto helper = makeHelper();
    const Fd never(::eventfd(0, EFD_CLOEXEC));
    std::string line;
    gpu::GpuProgram watch = helper->spawn("watch");
    REQUIRE(watch.ask("look"));
    CHECK(watch.listen(line, std::chrono::steady_clock::now() + std::chrono::milliseconds(100),
                       never.get()) == Heard::Late);
    gpu::GpuProgram scrub = helper->spawn("scrub " + StandinGpus::uuid(0));
    REQUIRE(test::eventually([&] { return machine.has("gpu0/memory.bin"); }));
    CHECK_FALSE(watch.waitEnd(std::chrono::milliseconds(0)));
    CHECK_FALSE(scrub.waitEnd(std::chrono::milliseconds(0)));
    helper.reset();  // the socket closes, as when the server is killed
    CHECK(watch.waitEnd(std::chrono::seconds(30)));
    CHECK(scrub.waitEnd(std::chrono::seconds(30)));
    CHECK(scrub.listen(line, soon(), never.get()) == Heard::Ended);
}

TEST_CASE("the helper starts nothing but its own programs", "[unit][gpu]") {
    auto helper = makeHelper();
    for (const char* request : {"look", "watch ", "scrub", "scrub GPU-1", "scrub --cuda", "sh"}) {
        CHECK(refusal(*helper, request) ==
              "hearth-gpu: the request is not one of watch and scrub UUID");
    }
    CHECK(refusal(*helper, "watch").empty());
}

TEST_CASE("a missing helper is named at each request", "[unit][gpu]") {
    gpu::HelperOptions options = standins();
    options.program = "/nowhere/hearth-gpu";
    auto helper = makeHelper(options);
    for (int i = 0; i < 2; ++i) {
        CHECK_THAT(refusal(*helper, "watch"), Catch::Contains("/nowhere/hearth-gpu has ended"));
    }
}

TEST_CASE(
    "the helper and its programs get no descriptor, and only the library names as environment",
    "[unit][gpu]") {
    if (::geteuid() != 0) {
        WARN("only root can look into the helper");
        return;
    }
    StandinGpus machine;
    machine.add("gpu0", StandinGpus::uuid(0));
    ::setenv("HEARTH_TOKEN", "a-secret", 1);
    ::setenv("LD_PRELOAD_OF_NOBODY", "x", 1);
    const Fd inherited(::open("/dev/null", O_RDONLY));  // without O_CLOEXEC
    const gpu::GpuHelper::Started started = gpu::GpuHelper::start(standins());
    ::unsetenv("HEARTH_TOKEN");
    ::unsetenv("LD_PRELOAD_OF_NOBODY");
    const std::string proc = "/proc/" + std::to_string(started.pid);
    REQUIRE(test::eventually(
        [&] { return test::readText(proc + "/cmdline").starts_with("hearth-gpu"); }));
    const std::string environment = test::readText(proc + "/environ");
    CHECK_THAT(environment, Catch::Contains("HEARTH_GPU_STANDIN="));
    CHECK_THAT(environment, !Catch::Contains("a-secret") && !Catch::Contains("LD_PRELOAD"));
    // While the helper starts, its loader has a library open.
    CHECK(test::eventually([&] {
        std::set<std::string> descriptors;
        for (const auto& entry : std::filesystem::directory_iterator(proc + "/fd")) {
            descriptors.insert(entry.path().filename());
        }
        return descriptors == std::set<std::string>{"0", "1", "2", "3"};
    }));
    const gpu::GpuHelper ends({Fd(::dup(started.socket.get())), started.pid}, "");
    ::shutdown(started.socket.get(), SHUT_RDWR);
}

TEST_CASE("a helper started by root changes to its account and keeps no privilege", "[unit][gpu]") {
    if (::geteuid() != 0) {
        WARN("only root can become another account");
        return;
    }
    gpu::HelperOptions options = standins();
    options.uid = 65534;
    options.gid = 65533;
    const gpu::GpuHelper::Started started = gpu::GpuHelper::start(options);
    const std::string proc = "/proc/" + std::to_string(started.pid);
    CHECK(test::eventually([&] {
        return test::readText(proc + "/cmdline").starts_with("hearth-gpu") &&
               test::readText(proc + "/status").find("NoNewPrivs:\t1") != std::string::npos;
    }));
    const std::string status = test::readText(proc + "/status");
    CHECK_THAT(status, Catch::Contains("Name:\thearth-gpu\n"));
    CHECK_THAT(status, Catch::Contains("Uid:\t65534\t65534\t65534\t65534\n"));
    CHECK_THAT(status, Catch::Contains("Gid:\t65533\t65533\t65533\t65533\n"));
    for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapAmb"}) {
        CHECK_THAT(status, Catch::Contains(std::string(set) + ":\t0000000000000000\n"));
    }
    const gpu::GpuHelper ends({Fd(::dup(started.socket.get())), started.pid}, "");
    ::shutdown(started.socket.get(), SHUT_RDWR);
}
