#include "base/Clock.h"
#include "base/Units.h"
#include "tests/support/Support.h"

using namespace hearth;
using namespace std::chrono_literals;

TEST_CASE("wall time is written as RFC 3339 with milliseconds", "[unit][base]") {
    CHECK(formatRfc3339(fromUnixMillis(0)) == "1970-01-01T00:00:00.000Z");
    CHECK(formatRfc3339(fromUnixMillis(1'700'000'000'123)) == "2023-11-14T22:13:20.123Z");
    CHECK(toUnixMillis(fromUnixMillis(1'700'000'000'123)) == 1'700'000'000'123);
}

TEST_CASE("times beyond the range of nanoseconds are shown right, and never wrap", "[unit][base]") {
    CHECK(formatUnixMillis(13'569'465'600'000) == "2400-01-01T00:00:00.000Z");
    CHECK(formatUnixMillis(253'402'300'799'999) == "9999-12-31T23:59:59.999Z");
    CHECK(formatUnixMillis(INT64_MAX) == "9999-12-31T23:59:59.999Z");
    CHECK(formatUnixMillis(INT64_MIN) == "0000-01-01T00:00:00.000Z");
    CHECK(formatUnixMillis(-1) == "1969-12-31T23:59:59.999Z");
    CHECK(fromUnixMillis(INT64_MAX) == kLastWallTime);
    CHECK(fromUnixMillis(INT64_MIN) == kFirstWallTime);
    CHECK(fromUnixMillis(-1'500) == WallTime(-1'500ms));
    CHECK(wallTimeAt(std::chrono::seconds(1'700'000'000)) == WallTime(1'700'000'000s));
    CHECK_FALSE(wallTimeAt(std::chrono::seconds(16'725'225'600)));  // the year 2500
    CHECK_FALSE(wallTimeAt(std::chrono::seconds::max()));
    CHECK_FALSE(wallTimeAt(std::chrono::seconds::min()));
    CHECK(nearestWallTime(std::chrono::duration<double>(1e300)) == kLastWallTime);
}

TEST_CASE("a manual clock moves only by hand, wall time and steady time together", "[unit][base]") {
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
