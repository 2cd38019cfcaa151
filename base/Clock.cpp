#include "base/Clock.h"

#include <array>
#include <cstdio>
#include <ctime>

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
    const std::int64_t millis = toUnixMillis(time);
    const auto seconds = static_cast<std::time_t>(millis / 1000);
    std::tm parts{};
    ::gmtime_r(&seconds, &parts);
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ",
                  parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday, parts.tm_hour,
                  parts.tm_min, parts.tm_sec, static_cast<int>(millis % 1000));
    return text.data();
}

std::int64_t toUnixMillis(WallTime time) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

WallTime fromUnixMillis(std::int64_t millis) {
    return WallTime(std::chrono::milliseconds(millis));
}

double toMillis(std::chrono::nanoseconds d) {
    return std::chrono::duration<double, std::milli>(d).count();
}

double toSeconds(std::chrono::nanoseconds d) {
    return std::chrono::duration<double>(d).count();
}

}  // namespace hearth
