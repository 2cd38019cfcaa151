#include "controller/services/PoolService.h"
#include "tests/support/House.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::controller::test;

TEST_CASE("an apply, a drain and a delete are one line of the log each, with their request's trace",
          "[unit][controller]") {
    Ground ground;
    House house{ground};
    const Principal who{"ops",
                        Role::Admin,
                        "",
                        {"0af7651916cd43dd8448eb211c80319c", "00f067aa0ba902b7", false, ""}};
    const Json document = poolDocument("p", smallSpec(0));
    bool created = false;
    house.pools.put(who, "p", document, {}, created);
    house.pools.put(who, "p", document, {}, created);
    house.pools.drain(who, "p");
    house.pools.remove(who, "p");
    const auto told = [&](const std::string& event, std::size_t at, const std::string& part) {
        const std::vector<std::string> lines = house.logged(event);
        REQUIRE(lines.size() > at);
        INFO(lines[at]);
        CHECK(lines[at].find(" level=info ") != std::string::npos);
        CHECK(lines[at].find(" pool=p tenant=ops " + part) != std::string::npos);
        CHECK(lines[at].find(" seconds=") != std::string::npos);
        CHECK(lines[at].ends_with(" trace=" + who.trace.trace_id));
    };
    told("pool.applied", 0, "result=created ");
    told("pool.applied", 1, "result=unchanged ");
    told("pool.drained", 0, "sandboxes=0 ");
    told("pool.deleting", 0, "");
    for (const Event& event : house.events.list(who, {0, "", "p"})) {
        INFO(event.type);
        CHECK(event.trace_id == who.trace.trace_id);
    }
}
