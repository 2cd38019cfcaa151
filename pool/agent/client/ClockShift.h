#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "base/Clock.h"

namespace hearth::agent {

/// How far the clock of an agent's machine is ahead of ours: nothing where both are one machine.
/// Where they are not, every moment that crosses the protocol is told in the agent's time. Zero
/// means "never" on both sides, and no moment becomes it.
class ClockShift {
public:
    ClockShift() = default;
    /// From a moment that the agent told between `asked` and `answered`. One that may have been
    /// read on our own clock is taken for that.
    ClockShift(TimePoint asked, TimePoint told, TimePoint answered) {
        if (told < asked || told > answered) ahead_ = told - (asked + (answered - asked) / 2);
    }

    TimePoint ours(TimePoint theirs) const { return shifted(theirs, -ahead_); }
    TimePoint theirs(TimePoint ours) const { return shifted(ours, ahead_); }

private:
    static TimePoint shifted(TimePoint at, std::chrono::nanoseconds by) {
        if (at == TimePoint{} || by.count() == 0) return at;
        std::int64_t sum = 0;  // what an agent tells may be anything
        const std::int64_t from = at.time_since_epoch().count();
        if (__builtin_add_overflow(from, by.count(), &sum)) return from < 0 ? kFirst : kLast;
        return std::max(TimePoint(std::chrono::nanoseconds(sum)), kFirst);
    }

    static constexpr TimePoint kFirst{std::chrono::nanoseconds(1)};
    static constexpr TimePoint kLast = TimePoint::max();

    std::chrono::nanoseconds ahead_{0};
};

}  // namespace hearth::agent
