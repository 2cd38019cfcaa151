#include "controller/claims/ImageFetcher.h"
#include "tests/support/House.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::controller::test;

TEST_CASE("an image of a registry at a denied address is not fetched, and its claim fails",
          "[unit][controller]") {
    Ground ground;
    House house(ground);
    std::string address = "10.1.2.3";
    const egress::ImageGateway gateway(
        {}, {}, {house.log, house.metrics, house.clock, house.tracer},
        [&](const std::string& name) {
            if (address.empty()) throw egress::Refused(502, "unresolved", name + " is unknown");
            return std::vector<egress::IpAddress>{*egress::IpAddress::parse(address)};
        });
    ImageFetcher fetcher(ground.runtime, gateway, {}, house.events, house.log);
    pool::ImageStages stages;
    const auto failure = [&](const std::string& image) {
        try {
            fetcher.fetch(image, stages);
        } catch (const Error& e) {
            return std::pair(e.code(), std::string(e.what()) + "; " + e.hint());
        }
        return std::pair(ErrorCode::Internal, std::string("fetched"));
    };
    const auto [code, told] = failure("registry.example:5000/team/far:1");
    CHECK(code == ErrorCode::InvalidSpec);
    CHECK(told.find("registry.example:5000 is at an address that images are not fetched from") !=
          std::string::npos);
    CHECK(told.find("egress.exempt") != std::string::npos);
    CHECK(told.find(address) == std::string::npos);
    address.clear();
    CHECK(failure("registry.example/team/far:1").first == ErrorCode::Unavailable);
    CHECK(failure("127.1/team/far:1").first == ErrorCode::InvalidSpec);
    CHECK(ground.runtime.fetches() == 0);
    address = "8.8.8.8";
    CHECK(fetcher.fetch("registry.example/team/far:1", stages).names.front() ==
          "registry.example/team/far:1");
    CHECK(fetcher.fetch("far:1", stages).digest.starts_with("sha256:"));
    CHECK(ground.runtime.fetches() == 2);
}
