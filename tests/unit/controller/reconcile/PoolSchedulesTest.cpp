#include "controller/reconcile/PoolReconciler.h"
#include "tests/support/House.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::controller::test;
using namespace std::chrono_literals;

namespace {

Schedule scheduleOf(const char* name, const char* cron, std::optional<WarmChange> warm,
                    std::chrono::milliseconds duration = 0ms) {
    return {name, Cron(cron), {}, duration, warm, !warm};
}

std::size_t eventsOf(House& house, const char* type, const char* reason) {
    EventQuery query;
    query.type = type;
    const std::vector<Event> all = house.events.list(house.who, query);
    return static_cast<std::size_t>(std::count_if(
        all.begin(), all.end(), [&](const Event& event) { return event.reason == reason; }));
}

/// A clock whose wall time can be set forward and back. Its monotonic time continues.
class JumpingClock final : public Clock {
public:
    TimePoint now() const override { return manual.now(); }
    WallTime wall() const override {
        return manual.wall() + std::chrono::duration_cast<WallTime::duration>(jumped);
    }

    ManualClock manual;
    std::chrono::seconds jumped{0};
};

/// Moves the clock in steps of 10 s. The reconciler looks in each step.
void pass(House& house, ManualClock& clock, std::chrono::seconds time) {
    for (std::chrono::seconds done = 0s; done < time; done += 10s) {
        clock.advance(10s);
        house.loop.settle();
    }
}
void pass(House& house, std::chrono::seconds time) {
    pass(house, house.ground.manual, time);
}

}  // namespace

// The manual clock starts at 2023-11-14 22:13:20 UTC.

TEST_CASE("a pool follows its schedules up, down and to nothing", "[unit][controller]") {
    Ground ground;
    House house(ground);
    PoolSpec spec = smallSpec(1);
    spec.schedules = {scheduleOf("peak", "20 22 * * *", WarmChange{4, {}}, 10min),
                      scheduleOf("empty", "40 22 * * *", WarmChange{{}, 0}, 10min)};
    house.declare("p", spec);
    REQUIRE(house.filled("p", 1));
    CHECK(house.statuses.of("p").schedule->entry.empty());
    CHECK(house.statuses.of("p").schedule->next_entry == "peak");
    CHECK(house.statuses.of("p").schedule->next_change == "2023-11-14T22:20:00.000Z");
    pass(house, 7min);
    REQUIRE(house.filled("p", 4));
    CHECK(house.statuses.of("p").schedule->entry == "peak");
    CHECK(house.statuses.of("p").desired == 4);
    CHECK(eventsOf(house, "pool.schedule_began", "peak") == 1);
    pass(house, 12min);
    CHECK(house.warm.counts("p").ready == 1);
    CHECK(eventsOf(house, "pool.schedule_ended", "peak") == 1);
    CHECK(eventsOf(house, "sandbox.retired", "schedule") == 3);
    pass(house, 9min);
    CHECK(house.warm.counts("p").ready == 0);
    CHECK(house.statuses.of("p").schedule->entry == "empty");
    pass(house, 10min);
    CHECK(house.warm.counts("p").ready == 1);
    CHECK(eventsOf(house, "sandbox.retired", "shrink") == 0);
}

TEST_CASE("an entry that fired before its pool was declared is in force", "[unit][controller]") {
    Ground ground;
    House house(ground);
    PoolSpec spec = smallSpec(2);
    spec.schedules = {scheduleOf("empty", "0 0 * * *", WarmChange{0, 0})};
    house.declare("p", spec);
    house.loop.settle();
    CHECK(house.warm.counts("p").total() == 0);
    CHECK(house.statuses.of("p").schedule->entry == "empty");
}

TEST_CASE("a sweep replaces the earlier warm sandboxes, once", "[unit][controller]") {
    Ground ground;
    House house(ground);
    PoolSpec spec = smallSpec(2);
    spec.schedules = {scheduleOf("sweep", "20 22 * * *", {})};
    house.declare("p", spec);
    REQUIRE(house.filled("p", 2));
    pass(house, 6min);
    CHECK(ground.runtime.created() == 2);
    pass(house, 1min);
    REQUIRE(house.filled("p", 2));
    CHECK(ground.runtime.created() == 4);
    CHECK(eventsOf(house, "pool.swept", "schedule") == 1);
    pass(house, 20min);
    CHECK(ground.runtime.created() == 4);
}

TEST_CASE("a recent sweep that was missed during a restart is made up for once",
          "[unit][controller]") {
    Ground ground;
    PoolSpec spec = smallSpec(2);
    spec.schedules = {scheduleOf("sweep", "20 22 * * *", {})};
    {
        House house(ground);
        house.declare("p", spec);
        REQUIRE(house.filled("p", 2));
    }
    ground.manual.advance(10min);
    {
        House house(ground);
        house.recover();
        REQUIRE(house.settleUntil([&] { return ground.runtime.created() == 4; }));
        REQUIRE(house.filled("p", 2));
    }
    House again(ground);
    again.recover();
    pass(again, 1min);
    CHECK(ground.runtime.created() == 4);
}

TEST_CASE("jumps of the wall clock neither lose nor repeat anything", "[unit][controller]") {
    JumpingClock clock;
    Ground ground(&clock);
    House house(ground);
    PoolSpec spec = smallSpec(1);
    spec.schedules = {scheduleOf("hour", "0 23 * * *", WarmChange{3, 3}, 30min),
                      scheduleOf("sweep", "15 23 * * *", {})};
    house.declare("p", spec);
    house.loop.settle();
    const auto go = [&](std::chrono::seconds time) { pass(house, clock.manual, time); };
    const auto desired = [&] {
        go(40s);
        return house.statuses.of("p").desired;
    };
    CHECK(desired() == 1);  // 22:14
    clock.jumped += 1h;
    CHECK(desired() == 3);
    go(2min);  // includes the sweep of 23:15
    CHECK(house.warm.counts("p").ready == 3);
    CHECK(eventsOf(house, "pool.swept", "schedule") == 1);
    const std::size_t made = ground.runtime.created();
    for (int i = 0; i < 5; ++i) {  // 23:15 comes again and again
        clock.jumped -= 3min;
        go(3min);
    }
    CHECK(eventsOf(house, "pool.swept", "schedule") == 1);
    CHECK(ground.runtime.created() == made);
    clock.jumped += 17min;
    CHECK(desired() == 1);  // 23:34
    go(2min);
    CHECK(house.warm.counts("p").ready == 1);
    clock.jumped += 24h * 3653;
    go(2min);
    clock.jumped -= 24h * 3653;
    go(24h);
    CHECK(eventsOf(house, "pool.swept", "schedule") == 2);  // the next day's sweep is not held back
    CHECK(house.warm.counts("p").total() <= 3);
}
