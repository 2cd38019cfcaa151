#include "tests/support/House.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::controller::test;

namespace {

egress::EgressOptions mirrored(const Ground& ground) {
    egress::EgressOptions options;
    options.mirrors.pypi = "http://127.0.0.1:9/simple/";
    options.cache_directory = ground.dir.file("mirror");
    return options;
}

/// A builder in sandboxes of the fake runtime, which contain no Python.
struct Shop {
    explicit Shop(const egress::EgressOptions& options)
        : gateway(options, log, metrics, clock, tracer) {}

    std::string failure(ErrorCode code) {
        try {
            builder.build({"python", "sha256:x", "p", {"numpy"}, ""});
        } catch (const Error& e) {
            CHECK(e.code() == code);
            return e.what();
        }
        return {};
    }

    SystemClock clock;
    metrics::Log log{-1};
    metrics::Metrics metrics;
    metrics::Tracer tracer;
    pool::FakeRuntime runtime{clock};
    agent::Poller poller;
    egress::EgressGateway gateway;
    TempDir dir;
    Epoch epoch;
    SandboxLayerBuilder builder{runtime, poller, gateway, epoch, dir.file(""), log, clock};
};

}  // namespace

TEST_CASE("without a mirror no sandbox is made to install packages", "[unit][controller]") {
    Shop shop({});
    CHECK(shop.failure(ErrorCode::Unsupported).find("--mirror-pypi") != std::string::npos);
    CHECK(shop.runtime.created() == 0);
}

TEST_CASE("a sandbox that cannot install packages says so and leaves nothing",
          "[unit][controller]") {
    Ground ground;
    Shop shop(mirrored(ground));
    CHECK_FALSE(shop.failure(ErrorCode::InvalidArgument).empty());
    CHECK(shop.runtime.created() == 1);
    CHECK(shop.runtime.list().empty());
    shop.runtime.failCreates(1);
    CHECK_THROWS(shop.builder.build({"python", "sha256:x", "p", {"numpy"}, ""}));
    CHECK(shop.runtime.list().empty());
    shop.builder.stop();
    CHECK_FALSE(shop.failure(ErrorCode::Unavailable).empty());
    CHECK(shop.runtime.created() == 1);
}

TEST_CASE("a sandbox that a crash left half-way through installing packages is swept",
          "[unit][controller]") {
    Ground ground;
    auto house = std::make_unique<House>(ground);
    house->declare("p", smallSpec(0));
    pool::SandboxSpec spec;
    spec.image = "python";
    spec.labels = {{"layer-builder", "1"}, {"pool", "p"}};
    CHECK(SandboxLayerBuilder::isBuilder(spec.labels));
    ground.runtime.create(newId("sb_"), spec);
    house.reset();
    house = std::make_unique<House>(ground);
    const Recovery::Outcome outcome = house->recover();
    CHECK(outcome.swept == 1);
    CHECK(outcome.warm == 0);
    CHECK(ground.runtime.list().empty());
}
