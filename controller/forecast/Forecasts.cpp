#include "controller/forecast/Forecasts.h"

namespace hearth::controller {

Forecasts::News Forecasts::look(const std::string& pool, const Moment& at,
                                const Objective& objective, const Seen& seen) {
    News news;
    std::uint64_t claims = 0;
    {
        const MutexLock lock(mutex_);
        Entry& entry = pools_[pool];
        // Another worker may already have looked with newer numbers.
        if (seen.claims > entry.seen.claims) {
            claims = seen.claims - entry.seen.claims;
            entry.forecast.arrived(at, claims, seen.missed - entry.seen.missed);
        }
        if (entry.looked != TimePoint{} && at.now > entry.looked) {
            news.idle_seconds =
                static_cast<double>(entry.seen.ready) * toSeconds(at.now - entry.looked);
        }
        entry.looked = at.now;
        if (seen.claims >= entry.seen.claims) entry.seen = seen;
        news.outlook = entry.forecast.look(at, objective);
    }
    news.recorded = recorder_.record(pool, at.wall, claims);
    return news;
}

void Forecasts::started(const std::string& pool, std::chrono::nanoseconds took) {
    const MutexLock lock(mutex_);
    const auto found = pools_.find(pool);
    if (found != pools_.end()) found->second.forecast.started(took);
}

void Forecasts::forget(const std::string& pool) {
    const MutexLock lock(mutex_);
    pools_.erase(pool);
}

}  // namespace hearth::controller
