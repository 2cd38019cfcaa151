#include "base/Clock.h"

#include <ctime>

#include "base/Units.h"

namespace hearth {

TimePoint SystemClock::now() const {
    timespec ts{};
    ::clock_gettime(CLOCK_BOOTTIME, &ts);
    return TimePoint(std::chrono::seconds(ts.tv_sec) + std::chrono::nanoseconds(ts.tv_nsec));
}

WallTime SystemClock::wall() const {
    return std::chrono::system_clock::now();
}

TimePoint ManualClock::now() const {
    const MutexLock lock(mutex_);
    return now_;
}

WallTime ManualClock::wall() const {
    const MutexLock lock(mutex_);
    return wall_;
}

void ManualClock::advance(std::chrono::nanoseconds by) {
    const MutexLock lock(mutex_);
    now_ += by;
    wall_ += std::chrono::duration_cast<WallTime::duration>(by);
}

std::string formatRfc3339(WallTime time) {
    return formatUnixMillis(toUnixMillis(time));
}

std::int64_t toUnixMillis(WallTime time) {
    return std::chrono::floor<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

WallTime fromUnixMillis(std::int64_t millis) {
    return nearestWallTime(std::chrono::milliseconds(millis));
}

double toMillis(std::chrono::nanoseconds d) {
    return std::chrono::duration<double, std::milli>(d).count();
}

double toSeconds(std::chrono::nanoseconds d) {
    return std::chrono::duration<double>(d).count();
}

}  // namespace hearth
