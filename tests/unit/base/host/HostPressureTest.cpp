#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "base/host/HostPressure.h"
#include "tests/support/Support.h"

using namespace hearth;
using namespace hearth::test;

namespace {

void write(const TempDir& dir, const char* name, const std::string& text) {
    std::ofstream(dir.file(name)) << text;
}

}  // namespace

TEST_CASE("pressure is read from the kernel's line of tasks that waited", "[unit][base]") {
    const TempDir dir;
    const std::string folder = dir.file("");
    write(dir, "cpu", "some avg10=12.50 avg60=1.00 avg300=0.50 total=2500000\n");
    write(dir, "memory",
          "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
          "full avg10=9.00 avg60=0.00 avg300=0.00 total=9\n");
    SECTION("all three are there") {
        write(dir, "io", "some avg10=3.10 avg60=0.00 avg300=0.00 total=1000000\n");
        const auto now = hostPressure(folder);
        REQUIRE(now);
        CHECK(now->cpu == 12.5);
        CHECK(now->memory == 0);
        CHECK(now->io == 3.1);
        CHECK(hostStalls(folder)->cpu == 2.5);
        CHECK(hostStalls(folder)->io == 1);
    }
    SECTION("one is missing") {
        CHECK_FALSE(hostPressure(folder));
        CHECK_FALSE(hostStalls(folder));
    }
    SECTION("one is not as the kernel writes it") {
        const std::string text =
            GENERATE("", "some", "some avg10=", "some avg10=x total=1", "full avg10=1 total=1");
        write(dir, "io", text);
        CHECK_FALSE(hostPressure(folder));
    }
}
