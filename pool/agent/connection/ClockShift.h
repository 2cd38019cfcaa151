#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "base/Clock.h"

namespace hearth::agent {

/// How far the clock of an agent's machine is ahead of ours: zero if both are on one machine.
/// Otherwise every time in the protocol is on the agent's clock. Zero means "never" on both sides,
/// and no time is converted to it.
class ClockShift {
public:
    ClockShift() = default;
    /// Takes the agent's time `told`, reported between `asked` and `answered`; if it lies between
    /// them, the clocks count as equal.
    ClockShift(TimePoint asked, TimePoint told, TimePoint answered) {
        if (told < asked || told > answered) ahead_ = told - (asked + (answered - asked) / 2);
    }

    TimePoint ours(TimePoint theirs) const { return shifted(theirs, -ahead_); }
    TimePoint theirs(TimePoint ours) const { return shifted(ours, ahead_); }

private:
    static TimePoint shifted(TimePoint at, std::chrono::nanoseconds by) {
        if (at == TimePoint{} || by.count() == 0) return at;
        std::int64_t sum = 0;  // an agent's time may be any value
        const std::int64_t from = at.time_since_epoch().count();
        if (__builtin_add_overflow(from, by.count(), &sum)) return from < 0 ? kFirst : kLast;
        return std::max(TimePoint(std::chrono::nanoseconds(sum)), kFirst);
    }

    static constexpr TimePoint kFirst{std::chrono::nanoseconds(1)};
    static constexpr TimePoint kLast = TimePoint::max();

    std::chrono::nanoseconds ahead_{0};
};

}  // namespace hearth::agent
