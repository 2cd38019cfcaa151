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
        return hearth::test::codeOf([&] { house.workspaces.create(house.who, request); });
    };
    const auto both_refused = [&](const WorkspaceRequest& request) {
        return hearth::test::codeOf([&] { house.workspaces.createAll(house.who, request, 2); });
    };
    CHECK(refused(large) == ErrorCode::PayloadTooLarge);
    CHECK(both_refused(large) == ErrorCode::PayloadTooLarge);
    // The refused claims hold no place.
    const std::string one = house.workspaces.create(house.who, small).id;
    CHECK(both_refused(large) == ErrorCode::QuotaExceeded);
    const std::string two = house.workspaces.create(house.who, small).id;
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

TEST_CASE("a claim that waits without a thread makes its keys once", "[unit][controller]") {
    hearth::controller::test::Ground ground;
    hearth::controller::test::House house(ground);
    PoolSpec spec = hearth::controller::test::smallSpec(1);
    spec.network = broker::NetworkMode::Egress;
    spec.network_allow = {"api.example.com"};
    house.declare("p", spec);
    REQUIRE(house.filled("p", 1));
    house.workspaces.create(house.who, hearth::controller::test::House::request());
    WorkspaceRequest request = hearth::controller::test::House::request();
    request.credentials = parseJson(R"([{"host":"api.example.com","value":"a long value"}])");
    request.patience.waits = false;
    request.patience.wait = std::make_shared<ClaimWait>();
    CHECK_THROWS_AS(house.workspaces.create(house.who, request), MustWait);
    REQUIRE(request.patience.wait->bindings.size() == 1);
    const auto keys = request.patience.wait->bindings.front().facts.keyring;
    REQUIRE(keys);
    CHECK(keys->authority() != nullptr);
    REQUIRE(house.settleUntil([&] { return request.patience.wait->due(); }));
    const WorkspaceView view = house.workspaces.create(house.who, request);
    CHECK(house.table.find(view.id)->facts().keyring == keys);
    CHECK(request.patience.wait->bindings.empty());
}
