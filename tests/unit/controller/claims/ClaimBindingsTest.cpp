#include <catch2/catch.hpp>
#include <memory>
#include <string>

#include "tests/unit/controller/Support.h"

using namespace hearth;
using namespace hearth::controller;

TEST_CASE("a claim beyond its quota or rate is refused before it is prepared",
          "[unit][controller]") {
    hearth::controller::test::Ground ground;
    hearth::controller::test::House house(ground);
    PoolSpec spec = hearth::controller::test::smallSpec(3);
    spec.per_tenant = 2;
    house.declare("p", spec);
    REQUIRE(house.filled("p", 3));
    const WorkspaceRequest small = hearth::controller::test::House::request();
    WorkspaceRequest large = small;  // found only when it is prepared
    for (const char* name : {"A", "B"}) large.secrets[name] = std::string(32'000, '\x01');
    const auto refused = [&](const WorkspaceRequest& request) {
        return hearth::test::codeOf([&] { house.open(house.who, request); });
    };
    const auto both_refused = [&](const WorkspaceRequest& request) {
        return hearth::test::codeOf([&] { house.openAll(house.who, request, 2); });
    };
    CHECK(refused(large) == ErrorCode::PayloadTooLarge);
    CHECK(both_refused(large) == ErrorCode::PayloadTooLarge);
    // The refused claims hold no place.
    const std::string one = house.open(house.who, small).id;
    CHECK(both_refused(large) == ErrorCode::QuotaExceeded);
    const std::string two = house.open(house.who, small).id;
    CHECK(refused(large) == ErrorCode::QuotaExceeded);
    // A check that costs little comes first: waiting would not help this claim.
    WorkspaceRequest wrong = small;
    wrong.allow.emplace();
    CHECK(refused(wrong) == ErrorCode::InvalidSpec);
    CHECK(both_refused(wrong) == ErrorCode::InvalidSpec);

    house.workspaces.close(house.who, one);
    house.workspaces.close(house.who, two);
    QuotaSpec rate;
    rate.claims_per_second = 2;
    rate.claim_burst = 2;
    house.quotas.set("default", rate);
    CHECK(both_refused(large) == ErrorCode::PayloadTooLarge);
    CHECK(refused(large) == ErrorCode::RateLimited);
    CHECK(both_refused(large) == ErrorCode::RateLimited);
}
