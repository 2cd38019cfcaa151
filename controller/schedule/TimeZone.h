#pragma once

#include <cctz/civil_time.h>
#include <cctz/time_zone.h>

#include <optional>
#include <string>

#include "base/Clock.h"

namespace hearth::controller {

/// A zone of the IANA database, from the machine's tzdata.
class TimeZone {
public:
    using Minute = cctz::civil_minute;

    /// UTC.
    TimeZone() = default;
    /// Returns nullopt if no such zone is known.
    static std::optional<TimeZone> find(const std::string& name);

    const std::string& name() const { return name_; }
    Minute local(WallTime at) const;
    /// When its clock first shows this time; if it skips the time, the end of the gap. A time
    /// beyond the accepted ones gives the nearest of them.
    WallTime first(const Minute& local) const;

    /// A stretch of time with one offset from UTC: it begins and ends with a change of the clock.
    struct Stretch {
        WallTime begin;
        WallTime end;
        std::chrono::seconds offset;
    };
    Stretch stretch(WallTime at) const;
    /// The last minute that the clock shows before the change that began the stretch of `at`, if it
    /// is later than the minute shown at `at`: then the local time since the change repeats.
    Minute latestShown(WallTime at) const;
    /// Formats as "2026-11-25 20:00 +08".
    std::string show(WallTime at) const;

    bool operator==(const TimeZone& other) const { return name_ == other.name_; }

private:
    std::string name_ = "UTC";
    cctz::time_zone zone_ = cctz::utc_time_zone();
};

}  // namespace hearth::controller
