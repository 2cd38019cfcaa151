#include "controller/schedule/ParseTime.h"

#include <cctz/time_zone.h>

#include "base/Units.h"

namespace hearth::controller {

std::optional<WallTime> parseTime(const std::string& text) {
    std::string whole = text;
    if (whole.ends_with('Z')) whole.replace(whole.size() - 1, 1, "+00:00");
    for (const char* format : {"%Y-%m-%dT%H:%M:%E*S%Ez", "%Y-%m-%dT%H:%M%Ez"}) {
        // Read in seconds first: cctz does not see that nanoseconds overflow.
        cctz::time_point<cctz::seconds> seconds;
        WallTime out;
        if (cctz::parse(format, whole, cctz::utc_time_zone(), &seconds) &&
            wallTimeAt(seconds.time_since_epoch()) &&
            cctz::parse(format, whole, cctz::utc_time_zone(), &out)) {
            return out;
        }
    }
    return std::nullopt;
}

}  // namespace hearth::controller
