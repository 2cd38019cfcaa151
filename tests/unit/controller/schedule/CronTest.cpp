#include <catch2/catch.hpp>
#include <cstdlib>
#include <ctime>
#include <set>

#include "base/Error.h"
#include "controller/schedule/Cron.h"

using namespace hearth;
using namespace hearth::controller;
using namespace std::chrono_literals;

namespace {

WallTime utc(int year, int month, int day, int hour = 0, int minute = 0) {
    return TimeZone().first(TimeZone::Minute(year, month, day, hour, minute));
}

std::string refusal(const std::string& line) {
    try {
        const Cron cron(line);
    } catch (const Error& e) {
        return e.what();
    }
    return "";
}

/// The answers of glibc for a zone; it shares no code with Hearth's.
class Glibc {
public:
    explicit Glibc(const char* zone) {
        ::setenv("TZ", zone, 1);
        ::tzset();
    }
    Glibc(const Glibc&) = delete;
    Glibc& operator=(const Glibc&) = delete;
    ~Glibc() {
        ::unsetenv("TZ");
        ::tzset();
    }
    static std::tm local(std::int64_t minute) {
        const std::time_t at = minute * 60;
        std::tm out{};
        ::localtime_r(&at, &out);
        return out;
    }
};

/// A cron line as sets of numbers, to be checked minute by minute.
struct Plain {
    const char* line;
    bool any_hour;
    std::set<int> minutes;
    std::set<int> hours;
    std::set<int> weekdays;  ///< empty: all
};

bool fits(const Plain& plain, std::int64_t shown_minute) {
    const auto in_day = static_cast<int>(((shown_minute % 1440) + 1440) % 1440);
    const auto weekday = static_cast<int>((shown_minute / 1440 + 4) % 7);
    return plain.minutes.contains(in_day % 60) && plain.hours.contains(in_day / 60) &&
           (plain.weekdays.empty() || plain.weekdays.contains(weekday));
}

std::set<int> upTo(int most, int step = 1) {
    std::set<int> all;
    for (int i = 0; i < most; i += step) all.insert(i);
    return all;
}

}  // namespace

TEST_CASE("valid cron lines are read", "[unit][schedule]") {
    for (const char* line :
         {"* * * * *",    "0 20 * * *",      "*/5 * * * *",   "0-30/10 8-18 * * mon-fri",
          "0 0 1 jan *",  "0 0 * * 7",       "0 0 * * SUN",   "1,2,3-5 0 29 feb *",
          "5/15 * * * *", "0 0 * * fri-sun", "@hourly",       "@daily",
          "@weekly",      "@monthly",        "@yearly",       "  0\t0  1 1 *  ",
          "0 0 31 * *",   "0 0 13 * 5",      "59 23 31 12 6", "0 0 */2 * *"}) {
        INFO(line);
        CHECK(refusal(line).empty());
    }
    CHECK(Cron("0 0 * * 0").next({}, utc(2026, 11, 25)) ==
          Cron("0 0 * * 7").next({}, utc(2026, 11, 25)));
}

TEST_CASE("wrong cron lines are refused with the allowed values", "[unit][schedule]") {
    const std::pair<const char*, const char*> wrong[] = {
        {"", "it has 0 fields"},
        {"* * * *", "it has 4 fields"},
        {"* * * * * *", "it has 6 fields"},
        {"0 0 0 * * ?", "it has 6 fields"},
        {"60 * * * *", "\"60\" in the field minute"},
        {"* 24 * * *", "\"24\" in the field hour"},
        {"* * 0 * *", "\"0\" in the field day of month"},
        {"* * 32 * *", "\"32\" in the field day of month"},
        {"* * * 0 *", "\"0\" in the field month"},
        {"* * * 13 *", "\"13\" in the field month"},
        {"* * * * 8", "\"8\" in the field day of week"},
        {"-1 * * * *", "\"-1\" in the field minute"},
        {"a * * * *", "\"a\" in the field minute"},
        {"1.5 * * * *", "\"1.5\" in the field minute"},
        {"1, * * * *", "\"\" in the field minute"},
        {",1 * * * *", "\"\" in the field minute"},
        {"1-2-3 * * * *", "\"1-2-3\" in the field minute"},
        {"5-1 * * * *", "begins after its end"},
        {"*/0 * * * *", "has a step"},
        {"*/60 * * * *", "has a step"},
        {"*/ * * * *", "has a step"},
        {"*/2/3 * * * *", "\"*/2/3\" in the field minute"},
        {"** * * * *", "\"**\" in the field minute"},
        {"* * * januar *", "\"januar\" in the field month"},
        {"* * * ja *", "1 to 12 or jan to dec"},
        {"* * * * montag", "0 to 7 or sun to sat"},
        {"* * L * *", "\"L\" in the field day of month"},
        {"* * * * 5#2", "\"5#2\" in the field day of week"},
        {"@reboot", "names are @hourly"},
        {"@Daily", "names are @hourly"},
        {"@", "names are @hourly"},
        {"0 0 30 2 *", "no year has such a day"},
        {"0 0 31 4,6,9,11 *", "no year has such a day"},
        {"99999999999 * * * *", "in the field minute"},
    };
    for (const auto& [line, why] : wrong) {
        INFO(line);
        CHECK_THAT(refusal(line), Catch::Contains(why));
        CHECK_THAT(refusal(line), Catch::Contains("\"" + std::string(line) + "\" is no cron line"));
    }
}

TEST_CASE("a day of month and a day of week are either-or", "[unit][schedule]") {
    const Cron cron("0 0 13 * fri");
    CHECK(cron.next({}, utc(2026, 11, 10)) == utc(2026, 11, 13));
    CHECK(cron.next({}, utc(2026, 11, 13)) == utc(2026, 11, 20));
    CHECK(cron.next({}, utc(2026, 12, 11)) == utc(2026, 12, 13));
    // With * in one of them both must fit, like "*/2" and Monday here.
    CHECK(Cron("0 0 */2 * mon").next({}, utc(2026, 11, 25)) == utc(2026, 12, 7));
    CHECK(Cron("0 0 29 feb *").next({}, utc(2096, 3, 1)) == utc(2104, 2, 29));
}

TEST_CASE("a time that is skipped fires after the gap and one that repeats fires once",
          "[unit][schedule]") {
    const TimeZone york = *TimeZone::find("America/New_York");
    const Cron night("30 2 * * *");
    CHECK(night.next(york, utc(2026, 3, 8)) == utc(2026, 3, 8, 7, 0));  // 03:00 there
    CHECK(night.next(york, utc(2026, 3, 8, 7, 0)) == utc(2026, 3, 9, 6, 30));
    CHECK(Cron("*/10 2 * * *").next(york, utc(2026, 3, 8, 7, 0)) == utc(2026, 3, 9, 6, 0));
    const Cron early("30 1 * * *");
    CHECK(early.next(york, utc(2026, 11, 1)) == utc(2026, 11, 1, 5, 30));
    CHECK(early.next(york, utc(2026, 11, 1, 5, 30)) == utc(2026, 11, 2, 6, 30));
    CHECK(early.last(york, utc(2026, 11, 1, 6, 10)) == utc(2026, 11, 1, 5, 30));
    const Cron hourly("30 * * * *");
    CHECK(hourly.next(york, utc(2026, 11, 1, 5, 30)) == utc(2026, 11, 1, 6, 30));
}

TEST_CASE("firings are those of a scan by the minute with another library", "[unit][schedule]") {
    const Plain lines[] = {
        {"30 2 * * *", false, {30}, {2}, {}},
        {"0 0 * * *", false, {0}, {0}, {}},
        {"15,45 1-2 * * sun", false, {15, 45}, {1, 2}, {0}},
        {"*/10 0,1,2,3 * * *", false, upTo(60, 10), {0, 1, 2, 3}, {}},
        {"0 * * * *", true, {0}, upTo(24), {}},
        {"*/20 */2 * * *", true, upTo(60, 20), upTo(24, 2), {}},
    };
    struct Place {
        const char* zone;
        WallTime begin;
    };
    const Place places[] = {
        {"Asia/Shanghai", utc(2026, 3, 1)},        {"America/New_York", utc(2026, 3, 7)},
        {"America/New_York", utc(2026, 10, 31)},   {"Europe/London", utc(2026, 3, 28)},
        {"Europe/London", utc(2026, 10, 24)},      {"Australia/Lord_Howe", utc(2026, 4, 3)},
        {"Australia/Lord_Howe", utc(2026, 10, 2)}, {"Pacific/Apia", utc(2011, 12, 28)},
        {"Pacific/Apia", utc(2021, 4, 2)},         {"America/Sao_Paulo", utc(2018, 11, 3)},
        {"America/Sao_Paulo", utc(2018, 2, 16)},   {"America/New_York", utc(2060, 3, 13)},
    };
    for (const auto& [name, begin] : places) {
        const Glibc glibc(name);
        const TimeZone zone = *TimeZone::find(name);
        const std::int64_t first =
            std::chrono::floor<std::chrono::minutes>(begin).time_since_epoch().count();
        constexpr std::int64_t kMinutes = 5 * 1440;
        for (const Plain& plain : lines) {
            const auto shown = [](std::int64_t minute) {
                return minute + Glibc::local(minute).tm_gmtoff / 60;
            };
            std::vector<std::int64_t> expected;
            // Two days suffice to find the latest local time. Times up to it do not fire again.
            std::int64_t latest = shown(first - 2 * 1440);
            for (std::int64_t at = first - 2 * 1440; at < first + kMinutes; ++at) {
                const std::int64_t now = shown(at);
                bool fires = plain.any_hour && fits(plain, now);
                if (!plain.any_hour) {
                    for (std::int64_t each = latest + 1; each <= now; ++each) {
                        fires = fires || fits(plain, each);
                    }
                }
                latest = std::max(latest, now);
                if (fires && at >= first) expected.push_back(at);
            }
            INFO(name << ": " << plain.line);
            const Cron cron(plain.line);
            std::vector<std::int64_t> found;
            WallTime at = begin - 1s;
            while (const auto next = cron.next(zone, at)) {
                if (*next >= begin + kMinutes * 1min) break;
                found.push_back(
                    std::chrono::floor<std::chrono::minutes>(*next).time_since_epoch().count());
                CHECK(cron.last(zone, *next) == next);
                if (found.size() > 1) {
                    CHECK(cron.last(zone, *next - 1s) == WallTime(found[found.size() - 2] * 1min));
                }
                at = *next;
            }
            CHECK(found == expected);
        }
    }
}

TEST_CASE("time zones come from the zone database only", "[unit][schedule]") {
    for (const char* name : {"UTC", "Asia/Shanghai", "America/Argentina/Buenos_Aires", "Etc/GMT+5"})
        CHECK(TimeZone::find(name));
    for (const char* name :
         {"", "Asia/Shangai", "asia/shanghai ", "/etc/passwd", "../zoneinfo/UTC", "localtime",
          "right/UTC", "file:Asia/Shanghai", "UTC+8:00", "-", "Asia", "Fixed/UTC+08:00:00"})
        CHECK_FALSE(TimeZone::find(name));
}
