#include "base/Clock.h"
#include "tests/support/Support.h"

using namespace hearth;
using namespace std::chrono_literals;

TEST_CASE("wall time is written as RFC 3339 with milliseconds", "[unit][base]") {
    CHECK(formatRfc3339(fromUnixMillis(0)) == "1970-01-01T00:00:00.000Z");
    CHECK(formatRfc3339(fromUnixMillis(1'700'000'000'123)) == "2023-11-14T22:13:20.123Z");
    CHECK(toUnixMillis(fromUnixMillis(1'700'000'000'123)) == 1'700'000'000'123);
}

TEST_CASE("a manual clock moves only by hand, both its hands together", "[unit][base]") {
    ManualClock clock;
    const TimePoint now = clock.now();
    const WallTime wall = clock.wall();
    CHECK(clock.now() == now);
    clock.advance(1500ms);
    CHECK(clock.now() - now == 1500ms);
    CHECK(clock.wall() - wall == 1500ms);
}

TEST_CASE("the machine's clock does not go back", "[unit][base]") {
    const SystemClock clock;
    const TimePoint now = clock.now();
    CHECK(clock.now() >= now);
    CHECK(toMillis(1500us) == Approx(1.5));
    CHECK(toSeconds(1500ms) == Approx(1.5));
}
