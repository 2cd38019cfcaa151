#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/Clock.h"

namespace hearth {

/// A bucket of `burst` tokens that fills at a rate; the caller brings rate, burst and time, which
/// may change between calls. Starts full. Not thread-safe.
class TokenBucket {
public:
    TokenBucket(double burst, TimePoint now) : tokens_(burst), filled_at_(now) {}

    /// The number of tokens at this time.
    double level(double rate, double burst, TimePoint now) const {
        const double passed = std::chrono::duration<double>(now - filled_at_).count();
        return std::min(burst, tokens_ + std::max(passed, 0.0) * rate);
    }
    /// Takes `count` tokens, or none if it has fewer.
    bool take(double count, double rate, double burst, TimePoint now) {
        tokens_ = level(rate, burst, now);
        filled_at_ = now;
        if (tokens_ < count) return false;
        tokens_ -= count;
        return true;
    }
    /// Returns tokens that were taken for nothing.
    void giveBack(double count) { tokens_ += count; }
    /// How long until it has `count`, in whole seconds; call after take() or level() for that time.
    std::chrono::seconds until(double count, double rate) const {
        return std::chrono::seconds(
            static_cast<std::int64_t>(std::ceil(std::max(0.0, count - tokens_) / rate - 1e-9)));
    }

private:
    double tokens_;
    TimePoint filled_at_;
};

}  // namespace hearth
