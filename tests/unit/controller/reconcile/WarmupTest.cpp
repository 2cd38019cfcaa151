#include <algorithm>

#include "controller/reconcile/Warmup.h"
#include "tests/unit/controller/Support.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::controller::test;
using namespace std::chrono_literals;

namespace {

bool toldThat(House& house, const std::string& type, const std::string& text) {
    const auto events = house.events.list(house.who, {.type = type, .resource = {}});
    return std::any_of(events.begin(), events.end(), [&](const Event& event) {
        return event.message.find(text) != std::string::npos;
    });
}

}  // namespace

TEST_CASE("a pool without prewarm has no condition about it", "[unit][controller]") {
    Ground ground;
    House house{ground};
    house.declare("p", smallSpec(1));
    REQUIRE(house.filled("p", 1));
    house.pool_reconciler.reconcile("p");
    CHECK(conditionIn(house.statuses.of("p"), ConditionType::Prewarmed) == nullptr);
}

TEST_CASE("a sandbox is ready once its interpreters are", "[unit][controller]") {
    Ground ground;
    House house{ground};
    PoolSpec spec = smallSpec(2);
    spec.prewarm_languages = {"python"};
    spec.prewarm_imports = {"numpy"};
    house.declare("p", spec);
    REQUIRE(house.filled("p", 2));
    house.pool_reconciler.reconcile("p");
    const PoolStatus status = house.statuses.of("p");
    const PoolCondition* condition = conditionIn(status, ConditionType::Prewarmed);
    REQUIRE(condition != nullptr);
    CHECK(condition->status);
}

TEST_CASE("a failed import is reported, and the sandbox still serves", "[unit][controller]") {
    Ground ground;
    House house{ground};
    PoolSpec spec = smallSpec(1);
    spec.prewarm_languages = {"python", "ruby"};
    spec.prewarm_imports = {"missing_module"};
    house.declare("p", spec);
    REQUIRE(house.filled("p", 1));
    house.pool_reconciler.reconcile("p");
    const PoolStatus status = house.statuses.of("p");
    const PoolCondition* condition = conditionIn(status, ConditionType::Prewarmed);
    REQUIRE(condition != nullptr);
    CHECK_FALSE(condition->status);
    CHECK(condition->message.find("missing_module") != std::string::npos);
    CHECK(condition->message.find("ruby") != std::string::npos);
    CHECK(toldThat(house, "pool.prewarm_failed", "missing_module"));
    CHECK(house.breaker.state("p").failures == 0);
}

TEST_CASE("a prewarm command runs before a sandbox is ready and is no execution of the tenant",
          "[unit][controller]") {
    Ground ground;
    auto house = std::make_unique<House>(ground);
    PoolSpec spec = smallSpec(1);
    spec.prewarm_command = {"echo", "warm"};
    house->declare("p", spec);
    REQUIRE(house->filled("p", 1));
    house.reset();
    house = std::make_unique<House>(ground);
    CHECK(house->recover().warm == 1);  // the command is known to have run
    const WorkspaceView view = house->open(house->who, House::request());
    house.reset();
    house = std::make_unique<House>(ground);
    CHECK(house->recover().workspaces == 1);
    house->loop.settle();
    CHECK(house->executions.list(house->who, view.id).empty());
}

TEST_CASE("a failed prewarm command fails its sandbox, and its output is reported",
          "[unit][controller]") {
    Ground ground;
    House house{ground};
    PoolSpec spec = smallSpec(1);
    spec.prewarm_command = {"exit", "3"};
    house.declare("p", spec);
    REQUIRE(house.settleUntil([&] { return house.breaker.state("p").failures > 0; }));
    CHECK(house.warm.counts("p").ready == 0);
    CHECK(toldThat(house, "sandbox.failed", "exit 3"));
}

TEST_CASE("a prewarm without an answer counts as a failed start of its sandbox",
          "[unit][controller]") {
    Ground ground;
    House house{ground};
    PoolSpec spec = smallSpec(1);
    spec.prewarm_command = {"sleep", "100000"};
    spec.prewarm_timeout = 5s;
    house.declare("p", spec);
    REQUIRE(house.settleUntil([&] { return house.warm.counts("p").warming == 1; }));
    CHECK(house.settleUntil([&] {
        ground.manual.advance(500ms);
        return house.breaker.state("p").failures > 0;
    }));
    CHECK(house.warm.counts("p").ready == 0);
}
