#include <catch2/catch.hpp>

#include "base/Units.h"
#include "controller/schedule/ParseTime.h"
#include "controller/schedule/Schedule.h"

using namespace hearth;
using namespace hearth::controller;
using namespace std::chrono_literals;

namespace {

WallTime at(int day, int hour, int minute = 0) {
    return TimeZone().first(TimeZone::Minute(2026, 11, day, hour, minute));
}

Schedule entry(const char* name, const char* cron, WarmChange warm,
               std::chrono::milliseconds duration = 0ms) {
    return {name, Cron(cron), {}, duration, warm, false};
}

constexpr WarmRange kOwn{2, 20};

}  // namespace

TEST_CASE("an entry without a duration holds until another one without one fires",
          "[unit][schedule]") {
    const Schedules schedules{entry("night", "0 20 * * *", {0, 2}), entry("day", "0 8 * * *", {})};
    CHECK(warmRange(schedules, kOwn, at(25, 21)) == WarmRange{0, 2});
    CHECK(warmRange(schedules, kOwn, at(26, 7, 59)) == WarmRange{0, 2});
    CHECK(warmRange(schedules, kOwn, at(26, 8)) == kOwn);
    CHECK(nextChange(schedules, at(25, 21)) == at(26, 8));
    CHECK(warmRange({schedules[0]}, kOwn, at(26, 12)) == WarmRange{0, 2});
    CHECK_FALSE(nextChange({schedules[0]}, at(26, 12)));
}

TEST_CASE("a window lies above the entry below it and ends by itself", "[unit][schedule]") {
    const Schedules schedules{entry("night", "0 20 * * *", {0, 2}),
                              entry("job", "0 22 * * *", {5, 5}, 1h),
                              entry("peak", "30 22 * * *", {9, {}}, 1h)};
    CHECK(warmRange(schedules, kOwn, at(25, 22)) == WarmRange{5, 5});
    CHECK(warmRange(schedules, kOwn, at(25, 22, 30)) == WarmRange{9, 20});  // this one fired last
    CHECK(warmRange(schedules, kOwn, at(25, 23, 29)) == WarmRange{9, 20});
    CHECK(warmRange(schedules, kOwn, at(25, 23, 30)) == WarmRange{0, 2});
    CHECK(nextChange(schedules, at(25, 22, 45)) == at(25, 23, 30));
    const Schedules window{schedules[1]};
    CHECK_FALSE(inForce(window, at(25, 23)).entry);
    CHECK(inForce(window, at(25, 23, 1)).since == at(25, 23));
}

TEST_CASE("a number of a schedule moves the pool's other one to fit", "[unit][schedule]") {
    CHECK(WarmChange{30, {}}.over(kOwn) == WarmRange{30, 30});
    CHECK(WarmChange{{}, 1}.over(kOwn) == WarmRange{1, 1});
    CHECK(WarmChange{{}, 0}.over(kOwn) == WarmRange{0, 0});
    CHECK(WarmChange{}.over(kOwn) == kOwn);
}

TEST_CASE("the later of two entries that fire at once wins", "[unit][schedule]") {
    const Schedules schedules{entry("a", "0 20 * * *", {1, 1}), entry("b", "0 20 * * *", {2, 2})};
    CHECK(inForce(schedules, at(25, 20)).entry == 1);
}

TEST_CASE("firings end before the range of the clock, so a search for the next one ends at once",
          "[unit][schedule]") {
    // Alone it changes nothing, so 64 firings are looked at: 256 years.
    for (const char* line : {"0 0 29 2 *", "0 * 29 2 *", "0 0 1 1 *", "@yearly"}) {
        const Schedules schedules{entry("one", line, {1, 2})};
        CHECK_FALSE(nextChange(schedules, at(25, 12)));
    }
    const Cron cron("0 0 29 2 *");
    const auto year = [](int number) { return TimeZone().first(TimeZone::Minute(number, 1, 1)); };
    CHECK(cron.next({}, year(2245)) == TimeZone().first(TimeZone::Minute(2248, 2, 29)));
    CHECK_FALSE(cron.next({}, year(2249)));
    CHECK(year(2500) == kLastWallTime);
    CHECK(TimeZone::find("Europe/Berlin")->first(TimeZone::Minute(9999, 12, 31)) == kLastWallTime);
    const Schedules window{entry("one", "0 0 29 2 *", {1, 2}, std::chrono::hours(87'000))};
    CHECK(nextChange(window, year(2248)));
}

TEST_CASE("a time beyond the range of a clock is refused", "[unit][schedule]") {
    CHECK(parseTime("2026-11-25T20:00:00.5Z") == at(25, 20) + 500ms);
    CHECK(parseTime("2249-12-31T00:00:00Z"));
    for (const char* text : {"2263-01-01T00:00:00Z", "2500-01-01T00:00:00Z", "9999-12-31T23:59:59Z",
                             "99999999-01-01T00:00:00Z", "0001-01-01T00:00:00Z"}) {
        CHECK_FALSE(parseTime(text));
    }
}

TEST_CASE("a sweep is due for ten minutes after its firing", "[unit][schedule]") {
    Schedule sweep{"sweep", Cron("0 4 * * *"), {}, 0ms, {}, true};
    CHECK_FALSE(sweepDue({sweep}, at(25, 3, 59)));
    CHECK(sweepDue({sweep}, at(25, 4))->at == at(25, 4));
    CHECK(sweepDue({sweep}, at(25, 4, 10))->at == at(25, 4));
    CHECK_FALSE(sweepDue({sweep}, at(25, 4, 11)));
    CHECK_FALSE(inForce({sweep}, at(25, 4)).entry);
    CHECK(nextMoment({sweep}, at(25, 4)) == at(26, 4));
}
