#include "controller/forecast/DayProfile.h"
#include "tests/support/Support.h"

using namespace hearth;
using namespace hearth::controller;
using namespace std::chrono_literals;

TEST_CASE("a time of day is known after a day that had it as a whole", "[unit][forecast]") {
    DayProfile profile;
    const WallTime midnight{1'767'571'200s};
    profile.add(midnight, 900);
    CHECK_FALSE(profile.rate(midnight));
    profile.add(midnight + 15min, 1800);
    profile.add(midnight + 30min, 0);
    CHECK_FALSE(profile.rate(midnight));  // it may be incomplete
    CHECK(profile.rate(midnight + 15min).value() == 2);
    CHECK(profile.rate(midnight + 24h + 20min).value() == 2);
    profile.add(midnight - 1h, 1);  // the clock was put back
    CHECK(profile.rate(midnight + 15min).value() == 2);
}
