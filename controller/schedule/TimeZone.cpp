#include "controller/schedule/TimeZone.h"

#include <algorithm>

#include "base/Units.h"

namespace hearth::controller {
namespace {

cctz::time_point<cctz::seconds> wholeSeconds(WallTime at) {
    return std::chrono::floor<std::chrono::seconds>(at);
}

/// Checks for a plain name below the database's folder: cctz itself would open any path.
bool isName(const std::string& name) {
    if (name.empty() || name.size() > 64 || name.front() == '/' || name.front() == '-') {
        return false;
    }
    for (const char* other : {"right/", "posix/", "localtime", "posixrules", "Factory"}) {
        if (name.starts_with(other)) return false;
    }
    return std::all_of(name.begin(), name.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '/' || c == '_' || c == '-' || c == '+';
    });
}

}  // namespace

std::optional<TimeZone> TimeZone::find(const std::string& name) {
    TimeZone zone;
    if (name == zone.name_) return zone;
    if (!isName(name) || !cctz::load_time_zone(name, &zone.zone_)) return std::nullopt;
    zone.name_ = name;
    return zone;
}

TimeZone::Minute TimeZone::local(WallTime at) const {
    return Minute(zone_.lookup(wholeSeconds(at)).cs);
}

WallTime TimeZone::first(const Minute& local) const {
    return nearestWallTime(cctz::convert(cctz::civil_second(local), zone_).time_since_epoch());
}

TimeZone::Stretch TimeZone::stretch(WallTime at) const {
    const auto now = wholeSeconds(at);
    Stretch stretch{WallTime::min(), WallTime::max(),
                    std::chrono::seconds(zone_.lookup(now).offset)};
    const auto instant = [this](const cctz::time_zone::civil_transition& change) {
        return nearestWallTime(zone_.lookup(change.to).trans.time_since_epoch());
    };
    cctz::time_zone::civil_transition change;
    if (zone_.prev_transition(now + std::chrono::seconds(1), &change))
        stretch.begin = instant(change);
    if (zone_.next_transition(now, &change)) stretch.end = instant(change);
    return stretch;
}

TimeZone::Minute TimeZone::latestShown(WallTime at) const {
    const Minute shown = local(at);
    cctz::time_zone::civil_transition change;
    if (!zone_.prev_transition(wholeSeconds(at) + std::chrono::seconds(1), &change)) return shown;
    return std::max(shown, Minute(change.from - 1));
}

std::string TimeZone::show(WallTime at) const {
    return cctz::format("%Y-%m-%d %H:%M %Z", at, zone_);
}

}  // namespace hearth::controller
