#include <nlohmann/json.hpp>

#include "tests/support/House.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::controller::test;
using namespace std::chrono_literals;

namespace {

QuotaUse useOf(House& house) {
    return house.quota_service.own(house.who).use;
}

}  // namespace

TEST_CASE("after a crash the live workspaces count in the quota with their real size",
          "[unit][controller][quota]") {
    Ground ground;
    QuotaUse before;
    {
        House house(ground);
        house.declare("p", smallSpec(4));
        house.recover();
        REQUIRE(house.filled("p", 4));
        bool created = false;
        house.quota_service.put(house.who, "default", parseJson(R"({"workspaces":3,"weight":2})"),
                                created);
        CHECK(created);
        house.openAll(house.who, House::request(), 2);
        WorkspaceRequest narrow = House::request();
        narrow.limits.memory_bytes = 64ULL << 20U;
        house.open(house.who, narrow);
        before = useOf(house);
        CHECK(before.workspaces == 3);
        CHECK(before.memory_bytes == 2 * smallSpec().limits.memory_bytes + (64ULL << 20U));
        house.journal.flush(1s);
    }
    House house(ground);
    CHECK(house.recover().workspaces == 3);
    CHECK(house.quota_service.own(house.who).spec.workspaces == 3);
    CHECK(house.quota_service.own(house.who).spec.weight == 2);
    CHECK(useOf(house) == before);
    CHECK(codeOf([&] { house.open(house.who, House::request()); }) == ErrorCode::QuotaExceeded);
    for (const WorkspaceView& one : house.workspaces.list(house.who, {}).items) {
        house.workspaces.close(house.who, one.id);
    }
    CHECK(house.settleUntil([&] { return useOf(house) == QuotaUse(); }));
}

TEST_CASE("a claim of several sandboxes is found by its key, and completed after a crash in it",
          "[unit][controller][quota]") {
    Ground ground;
    std::vector<std::string> ids;
    {
        House house(ground);
        house.declare("p", smallSpec(4));
        house.recover();
        REQUIRE(house.filled("p", 4));
        for (const WorkspaceView& one : house.openAll(house.who, House::request("key"), 2)) {
            CHECK_FALSE(one.replayed);
            ids.push_back(one.id);
        }
        for (const WorkspaceView& one : house.openAll(house.who, House::request("key"), 2)) {
            CHECK(one.replayed);
            CHECK(one.id == ids[one.id == ids[0] ? 0 : 1]);
        }
        CHECK(codeOf([&] { house.openAll(house.who, House::request("key", "other"), 2); }) ==
              ErrorCode::IdempotencyMismatch);
        house.journal.flush(1s);
    }
    House house(ground);
    CHECK(house.recover().workspaces == 2);
    REQUIRE(house.filled("p", 2));
    // The state is that after a kill when two of three were bound.
    const auto three = house.openAll(house.who, House::request("key"), 3);
    REQUIRE(three.size() == 3);
    CHECK(three[0].id == ids[0]);
    CHECK(three[1].id == ids[1]);
    CHECK(useOf(house).workspaces == 3);
    house.workspaces.close(house.who, ids[0]);
    CHECK(codeOf([&] { house.openAll(house.who, House::request("key"), 3); }) == ErrorCode::Gone);
}

TEST_CASE("a claim of several sandboxes beyond the quota takes nothing",
          "[unit][controller][quota]") {
    Ground ground;
    House house(ground);
    PoolSpec spec = smallSpec(3);
    spec.per_tenant = 4;
    house.declare("p", spec);
    house.recover();
    REQUIRE(house.filled("p", 3));
    const auto several = [&](std::size_t count) {
        return errorOf([&] { house.openAll(house.who, House::request(), count); });
    };
    CHECK(several(21).code() == ErrorCode::InvalidSpec);  // warm.max is 20
    CHECK(several(5).code() == ErrorCode::InvalidSpec);
    house.openAll(house.who, House::request(), 2);
    CHECK(several(3).code() == ErrorCode::QuotaExceeded);
    CHECK(house.warm.counts("p").claimed == 2);
    CHECK(useOf(house).workspaces == 2);
    bool created = false;
    CHECK(codeOf([&] {
              house.quota_service.put(house.who, "default", parseJson(R"({"workspaces":1})"),
                                      created);
          }) == ErrorCode::InvalidSpec);
    CHECK(house.quota_service.own(house.who).source == QuotaSource::None);
}

TEST_CASE("users read their own quota only, and operators change all that is not configured",
          "[unit][controller][quota]") {
    Ground ground;
    House house(ground);
    house.declare("p", smallSpec(1));
    house.quota_service.declare({{"fixed", QuotaSpec{.workspaces = 2}}});
    const Principal user{"team", Role::User, ""};
    bool created = false;
    const Json none = parseJson("{}");
    CHECK(codeOf([&] { house.quota_service.list(user); }) == ErrorCode::Forbidden);
    CHECK(codeOf([&] { house.quota_service.get(user, "fixed"); }) == ErrorCode::Forbidden);
    CHECK(codeOf([&] { house.quota_service.put(user, "team", none, created); }) ==
          ErrorCode::Forbidden);
    CHECK(house.quota_service.get(user, "team").source == QuotaSource::None);
    CHECK(house.quota_service.get(house.who, "fixed").source == QuotaSource::Config);
    CHECK(codeOf([&] { house.quota_service.put(house.who, "fixed", none, created); }) ==
          ErrorCode::Conflict);
    CHECK(codeOf([&] { house.quota_service.remove(house.who, "team"); }) == ErrorCode::NotFound);
    const Error error = errorOf([&] {
        house.quota_service.put(house.who, "team", parseJson(R"({"guaranteed":{"p":101}})"),
                                created);
    });
    CHECK(error.code() == ErrorCode::InvalidSpec);
    REQUIRE(error.fields().size() == 1);
    CHECK(error.fields()[0].pointer == "/guaranteed/p");
    house.quota_service.put(house.who, "*", parseJson(R"({"workspaces":9})"), created);
    CHECK(house.quota_service.get(user, "team").source == QuotaSource::Default);
    CHECK(house.quota_service.get(user, "team").spec.workspaces == 9);
}

TEST_CASE("a running execution counts until its end", "[unit][controller][quota]") {
    Ground ground;
    House house(ground);
    house.declare("p", smallSpec(1));
    house.recover();
    REQUIRE(house.filled("p", 1));
    bool created = false;
    house.quota_service.put(house.who, "default", parseJson(R"({"executions":1})"), created);
    const std::string id = house.open(house.who, House::request()).id;
    ExecutionRequest request;
    request.command = "sleep 1000";
    const auto running = house.executions.start(house.who, id, request);
    CHECK(codeOf([&] { house.executions.start(house.who, id, request); }) ==
          ErrorCode::QuotaExceeded);
    CHECK(useOf(house).executions == 1);
    house.executions.kill(house.who, running->id());
    CHECK(house.settleUntil([&] { return running->finished(); }));
    CHECK(useOf(house).executions == 0);
    CHECK_NOTHROW(house.executions.start(house.who, id, request));
}
