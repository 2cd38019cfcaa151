#pragma once

#include <chrono>
#include <string>

#include "base/Mutex.h"

namespace hearth {

/// Time on CLOCK_BOOTTIME: counts suspend, never jumps, and is the same clock the agents read
/// inside their sandboxes, so a value may cross the agent protocol. All deadlines use it.
struct BootClock {
    // NOLINTBEGIN(readability-identifier-naming): what std::chrono asks of a clock
    using duration = std::chrono::nanoseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<BootClock>;
    static constexpr bool is_steady = true;
    // NOLINTEND(readability-identifier-naming)
};
using TimePoint = BootClock::time_point;
/// Wall time, for display and history only.
using WallTime = std::chrono::system_clock::time_point;

/// The source of time. Everything that decides by time takes one. Thread-safe.
class Clock {
public:
    virtual ~Clock() = default;
    virtual TimePoint now() const = 0;
    virtual WallTime wall() const = 0;
};

/// The machine's clocks.
class SystemClock final : public Clock {
public:
    TimePoint now() const override;
    WallTime wall() const override;
};

/// A clock that tests move by hand.
class ManualClock final : public Clock {
public:
    TimePoint now() const override;
    WallTime wall() const override;
    void advance(std::chrono::nanoseconds by);

private:
    mutable Mutex mutex_;
    TimePoint now_ HEARTH_GUARDED_BY(mutex_){std::chrono::hours(1)};
    WallTime wall_ HEARTH_GUARDED_BY(mutex_){std::chrono::seconds(1'700'000'000)};
};

/// "2026-11-21T03:04:05.678Z".
std::string formatRfc3339(WallTime time);
/// Milliseconds since the epoch, the form stored on disk.
std::int64_t toUnixMillis(WallTime time);
WallTime fromUnixMillis(std::int64_t millis);
/// A duration as fractional milliseconds or seconds, for answers and metrics.
double toMillis(std::chrono::nanoseconds d);
double toSeconds(std::chrono::nanoseconds d);

}  // namespace hearth
