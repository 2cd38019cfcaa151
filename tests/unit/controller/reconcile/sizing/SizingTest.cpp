#include "controller/reconcile/sizing/Sizing.h"
#include "tests/support/Support.h"

using namespace hearth;
using namespace hearth::controller;

TEST_CASE("a pool should have its floor, and never more than its most", "[unit][controller]") {
    PoolSpec spec;
    spec.warm_min = 3;
    spec.warm_max = 10;
    CHECK(desiredWarm({spec, WallTime{}}) == 3);
    spec.warm_max = 2;
    CHECK(desiredWarm({spec, WallTime{}}) == 2);
    spec.warm_min = 0;
    CHECK(desiredWarm({spec, WallTime{}}) == 0);
}
