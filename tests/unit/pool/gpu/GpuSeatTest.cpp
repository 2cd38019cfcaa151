#include <catch2/catch.hpp>
#include <filesystem>

#include "pool/gpu/GpuSeat.h"
#include "tests/support/Support.h"

using namespace hearth;
using namespace hearth::pool::gpu;
using namespace hearth::test;

namespace {

constexpr const char* kLibrary = "libnvidia-ml.so.1";

Instance instanceIn(const TempDir& root, const std::string& name) {
    return {name, root.path(), root.file(name)};
}

}  // namespace

TEST_CASE("one server has the machine's GPUs, and the refusal of another names it", "[unit][gpu]") {
    const TempDir root;
    const Instance first = instanceIn(root, "aaaaaaaaaaa1");
    const Instance second = instanceIn(root, "aaaaaaaaaaa2");
    {
        const GpuSeat seat = GpuSeat::take(first, kLibrary);
        CHECK(seat.taken());
        CHECK(seat.refusal().empty());
        CHECK(seat.tenure().before.empty());
        const GpuSeat other = GpuSeat::take(second, kLibrary);
        CHECK_FALSE(other.taken());
        CHECK(other.tenure().now.empty());
        CHECK_THAT(other.refusal(), Catch::Contains("process " + std::to_string(::getpid())));
        CHECK(GpuSeat::take(second, "/opt/other/libnvidia-ml.so").taken());
    }
    CHECK(GpuSeat::take(second, kLibrary).taken());
}

TEST_CASE("a start trusts the records of the start before, unless another server came between",
          "[unit][gpu]") {
    const TempDir root;
    const Instance first = instanceIn(root, "aaaaaaaaaaa1");
    const std::string now = GpuSeat::take(first, kLibrary).tenure().now;
    const hearth::pool::GpuTenure next = GpuSeat::take(first, kLibrary).tenure();
    CHECK(next.before == now);
    CHECK(next.now != now);
    CHECK(GpuSeat::take(instanceIn(root, "aaaaaaaaaaa2"), kLibrary).tenure().before.empty());
    CHECK(GpuSeat::take(first, kLibrary).tenure().before.empty());
}

TEST_CASE("another boot of the machine is another tenure", "[unit][gpu]") {
    const TempDir root;
    const Instance first = instanceIn(root, "aaaaaaaaaaa1");
    for (const char* note : {"0-of-another-boot aaaaaaaaaaa1 abc 12\n", "", "half"}) {
        writeText(root.file("gpus.lock"), note);
        CHECK(GpuSeat::take(first, kLibrary).tenure().before.empty());
    }
}

TEST_CASE("the GPUs stay with a server while its sandboxes are left behind", "[unit][gpu]") {
    const TempDir root;
    const Instance first = instanceIn(root, "aaaaaaaaaaa1");
    const Instance second = instanceIn(root, "aaaaaaaaaaa2");
    CHECK(GpuSeat::take(first, kLibrary).taken());
    std::filesystem::create_directories(first.run_dir + "/sockets");
    writeText(first.run_dir + "/sockets/sb_1.sock", "");
    const GpuSeat refused = GpuSeat::take(second, kLibrary);
    CHECK_FALSE(refused.taken());
    CHECK_THAT(refused.refusal(), Catch::Contains("sandboxes of another"));
    CHECK(GpuSeat::take(first, kLibrary).taken());  // its own sandbox does not matter
    std::filesystem::remove(first.run_dir + "/sockets/sb_1.sock");
    CHECK(GpuSeat::take(second, kLibrary).taken());
}
