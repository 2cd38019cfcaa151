#include "controller/workspaces/Reclaimer.h"
#include "tests/support/House.h"
#include "tests/unit/controller/Principals.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::controller::test;
using namespace std::chrono_literals;

namespace {

struct Fading : Ground {
    House house{*this};

    explicit Fading(bool count_running_work = true) {
        PoolSpec spec = smallSpec(1);
        spec.idle_timeout = 100s;
        spec.max_lifetime = 1h;
        spec.count_running_work = count_running_work;
        house.declare("p", spec);
        REQUIRE(house.filled("p", 1));
    }

    std::vector<std::string> events(const std::string& workspace) {
        std::vector<std::string> out;
        for (const Event& event : house.events.list(kTenant, {0, "", workspace})) {
            out.push_back(event.type + " " + event.reason);
        }
        return out;
    }

    void sweepAfter(std::chrono::seconds time) {
        manual.advance(time);
        house.reclaimer.sweep();
    }
};

}  // namespace

TEST_CASE("an idle workspace's owner is warned, and then it ends", "[unit][controller]") {
    Fading fading;
    const std::string id = fading.house.open(kTenant, House::request()).id;
    fading.sweepAfter(69s);
    CHECK(fading.events(id) == std::vector<std::string>{"workspace.created claimed"});
    fading.sweepAfter(2s);
    fading.sweepAfter(1s);
    CHECK(fading.events(id) ==
          std::vector<std::string>{"workspace.created claimed", "workspace.expiring idle"});
    CHECK(fading.house.events.list({"blue", Role::User, ""}, {0, "", id}).empty());
    fading.sweepAfter(29s);
    CHECK(fading.events(id) == std::vector<std::string>{"workspace.created claimed",
                                                        "workspace.expiring idle",
                                                        "workspace.reclaimed idle"});
}

TEST_CASE("running work keeps a workspace only in pools that count it", "[unit][controller]") {
    for (const bool counts : {true, false}) {
        Fading fading(counts);
        const std::string id = fading.house.open(kTenant, House::request()).id;
        ExecutionRequest run;
        run.command = "sleep 3600";
        run.background = true;
        const std::shared_ptr<Execution> execution =
            fading.house.executions.start(kTenant, id, run);
        REQUIRE_FALSE(execution->finished());
        fading.sweepAfter(101s);
        const bool ended = fading.events(id).back() == "workspace.reclaimed idle";
        CHECK(ended == !counts);
    }
}

TEST_CASE("a client that follows an execution keeps its workspace", "[unit][controller]") {
    Fading fading(false);
    const std::string id = fading.house.open(kTenant, House::request()).id;
    ExecutionRequest run;
    run.command = "sleep 3600";
    run.background = true;
    const std::shared_ptr<Execution> execution = fading.house.executions.start(kTenant, id, run);
    std::shared_ptr<void> followed = execution->subscribe([] {});
    fading.sweepAfter(200s);
    CHECK(fading.events(id).back() == "workspace.created claimed");
    followed.reset();
    fading.sweepAfter(99s);
    CHECK(fading.events(id).back() == "workspace.expiring idle");
    fading.sweepAfter(2s);
    CHECK(fading.events(id).back() == "workspace.reclaimed idle");
}

TEST_CASE("a restarted server keeps each workspace's rules for idleness and warnings",
          "[unit][controller]") {
    Ground ground;
    std::string id;
    {
        House house(ground);
        PoolSpec spec = smallSpec(1);
        spec.idle_timeout = 100s;
        spec.count_running_work = false;
        house.declare("p", spec);
        REQUIRE(house.filled("p", 1));
        id = house.open(kTenant, House::request()).id;
    }
    House house(ground);
    house.recover();
    REQUIRE(house.table.find(id));
    CHECK_FALSE(house.table.find(id)->facts().count_running_work);
    CHECK(house.table.find(id)->facts().warn_before == 30s);
}
