#include <catch2/catch.hpp>
#include <limits>

#include "pool/agent/connection/ClockShift.h"

using hearth::TimePoint;
using hearth::agent::ClockShift;
using namespace std::chrono_literals;

namespace {

TimePoint at(std::chrono::nanoseconds span) {
    return TimePoint(span);
}

}  // namespace

TEST_CASE("a time that may be of the own clock is not shifted", "[unit][agent]") {
    for (const auto told : {100s, 101s, 102s}) {
        const ClockShift shift(at(100s), at(told), at(102s));
        CHECK(shift.ours(at(7s)) == at(7s));
        CHECK(shift.theirs(at(7s)) == at(7s));
    }
}

TEST_CASE("the times of another machine's agent are converted to local time, and back",
          "[unit][agent]") {
    for (const auto told : {5s, 90'000s}) {
        const ClockShift shift(at(1000s), at(told), at(1002s));
        CHECK(shift.ours(at(told)) == at(1001s));
        CHECK(shift.theirs(at(1001s)) == at(told));
        CHECK(shift.theirs(shift.ours(at(told + 60s))) == at(told + 60s));
    }
}

TEST_CASE("never stays never, and no time becomes never", "[unit][agent]") {
    const ClockShift shift(at(1000s), at(5s), at(1002s));
    CHECK(shift.ours(TimePoint{}) == TimePoint{});
    CHECK(shift.theirs(TimePoint{}) == TimePoint{});
    CHECK(shift.theirs(at(996s)) > TimePoint{});
    CHECK(shift.theirs(at(1s)) > TimePoint{});
}

TEST_CASE("a time beyond the range of the clock stays a valid time", "[unit][agent]") {
    const TimePoint last(std::chrono::nanoseconds(std::numeric_limits<std::int64_t>::max()));
    CHECK(ClockShift(at(1000s), at(5s), at(1002s)).ours(last) == last);
    CHECK(ClockShift(at(1s), last, at(2s)).theirs(at(10s)) == last);
    CHECK(ClockShift(at(1s), last, at(2s)).ours(at(10s)) > TimePoint{});
}
