#include "controller/forecast/LeadTimes.h"

#include <algorithm>

#include "base/Clock.h"

namespace hearth::controller {

void LeadTimes::add(std::chrono::nanoseconds took) {
    const double seconds = std::max(0.0, toSeconds(took));
    double& place = seconds_[next_];
    sum_ += seconds - place;
    squares_ += seconds * seconds - place * place;
    place = seconds;
    next_ = (next_ + 1) % kKept;
    count_ = std::min(count_ + 1, kKept);
}

double LeadTimes::mean() const {
    return count_ == 0 ? 0 : std::max(0.0, sum_) / static_cast<double>(count_);
}

double LeadTimes::dispersion() const {
    const double middle = mean();
    if (middle <= 0) return 0;
    const double square = middle * middle;
    return std::max(0.0, squares_ / static_cast<double>(count_) - square) / square;
}

}  // namespace hearth::controller
