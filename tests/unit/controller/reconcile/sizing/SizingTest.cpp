#include "controller/reconcile/sizing/Sizing.h"
#include "tests/support/Support.h"

using namespace hearth;
using namespace hearth::controller;

TEST_CASE("a pool's target is its floor, and never above its limit", "[unit][controller]") {
    PoolSpec spec;
    spec.warm_min = 3;
    spec.warm_max = 10;
    CHECK(desiredWarm({spec, WallTime{}}) == 3);
    spec.warm_max = 2;
    CHECK(desiredWarm({spec, WallTime{}}) == 2);
    spec.warm_min = 0;
    CHECK(desiredWarm({spec, WallTime{}}) == 0);
}

TEST_CASE(
    "claims that wait get sandboxes within warm.max, or beyond it if the pool creates on empty",
    "[unit][controller]") {
    PoolSpec spec;
    spec.warm_min = 1;
    spec.warm_max = 2;
    spec.max_members = 6;
    CHECK(wantedUnclaimed({spec, WallTime{}}, 1, 0) == 1);
    CHECK(wantedUnclaimed({spec, WallTime{}}, 1, 4) == 2);
    spec.on_empty = OnEmpty::Create;
    CHECK(wantedUnclaimed({spec, WallTime{}}, 1, 0) == 1);
    CHECK(wantedUnclaimed({spec, WallTime{}}, 1, 4) == 5);
    CHECK(wantedUnclaimed({spec, WallTime{}}, 1, 40) == 6);
    spec.on_empty = OnEmpty::Queue;
    spec.warm_min = spec.warm_max = 0;
    CHECK(wantedUnclaimed({spec, WallTime{}}, 0, 3) == 1);
}

TEST_CASE("a forecast raises a predictive pool between its floor and its most",
          "[unit][controller]") {
    PoolSpec spec;
    spec.warm_min = 3;
    spec.warm_max = 10;
    const auto with = [&](std::size_t target) {
        return desiredWarm({spec, WallTime{}, {.target = target}});
    };
    CHECK(with(7) == 3);  // Static
    spec.sizing = SizingMode::Predictive;
    CHECK(with(1) == 3);
    CHECK(with(7) == 7);
    CHECK(with(70) == 10);
}
