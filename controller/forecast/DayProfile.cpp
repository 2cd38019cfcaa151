#include "controller/forecast/DayProfile.h"

#include <algorithm>

namespace hearth::controller {
namespace {

/// The weight of the newest day.
constexpr double kNewDay = 0.5;

std::int64_t binOf(WallTime at, std::chrono::seconds width) {
    return std::chrono::floor<std::chrono::seconds>(at.time_since_epoch()) / width;
}

}  // namespace

void DayProfile::add(WallTime at, double claims) {
    moveTo(at);
    claims_ += claims;
}

std::optional<double> DayProfile::rate(WallTime at) const {
    return rates_[static_cast<std::size_t>(binOf(at, kBin)) % kBins];
}

void DayProfile::moveTo(WallTime at) {
    const std::int64_t now = binOf(at, kBin);
    if (!bin_ || now < *bin_) {  // the first call, or the clock was put back
        bin_ = now;
        whole_ = false;
        claims_ = 0;
    }
    // More than a day at once is ignored: the clock was put forward, or there were no calls.
    if (now - *bin_ > static_cast<std::int64_t>(kBins)) {
        bin_ = now;
        whole_ = false;
        claims_ = 0;
    }
    for (; *bin_ < now; ++*bin_) {
        std::optional<double>& known = rates_[static_cast<std::size_t>(*bin_) % kBins];
        const double seen = claims_ / static_cast<double>(kBin.count());
        if (whole_) known = known ? *known + kNewDay * (seen - *known) : seen;
        whole_ = true;
        claims_ = 0;
    }
}

}  // namespace hearth::controller
