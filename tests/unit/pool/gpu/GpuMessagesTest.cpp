#include <catch2/catch.hpp>

#include "pool/gpu/GpuMessages.h"
#include "tests/support/Support.h"

using namespace hearth;
using namespace hearth::pool;

TEST_CASE("looks and scrubs are read back from their lines unchanged", "[unit][gpu]") {
    gpu::GpuLook look;
    look.absence = "none \"here\"";
    look.devices = {{"GPU-1", "A", 7, "", "", true, "lost"},
                    {"MIG-1", "A", UINT64_MAX, "GPU-1", "1g.5gb", false, ""}};
    look.lasting = {{"GPU-1", "XID 79"}};
    const gpu::GpuLook back = gpu::decodeLook(gpu::encodeLook(look));
    CHECK(back.absence == look.absence);
    CHECK(back.devices == look.devices);
    CHECK(back.lasting == look.lasting);
    const GpuScrub scrub = gpu::decodeScrub(gpu::encodeScrub({false, "no\nway", 9}));
    CHECK_FALSE(scrub.clean);
    CHECK(scrub.why == "no\nway");
    CHECK(scrub.bytes == 9);
}

TEST_CASE("an invalid line of the helper is refused with its place", "[unit][gpu]") {
    const auto refusal = [](const std::string& line) {
        return std::string(test::errorOf([&] { gpu::decodeLook(line); }).what());
    };
    CHECK_THAT(refusal(R"({"absence":"","devices":[{"uuid":7}],"lasting":[]})"),
               Catch::Contains("/devices/0/uuid"));
    CHECK_THAT(refusal(R"({"absence":"","devices":[]})"), Catch::Contains("/lasting"));
    CHECK(test::codeOf([] { gpu::decodeLook("[]"); }) == ErrorCode::InvalidArgument);
    CHECK(test::codeOf([] { gpu::decodeLook("no JSON"); }) == ErrorCode::InvalidArgument);
    CHECK(test::codeOf([] { gpu::decodeScrub(R"({"clean":false,"why":"","bytes":0})"); }) ==
          ErrorCode::InvalidArgument);
}
