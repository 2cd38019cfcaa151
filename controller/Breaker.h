#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "base/Clock.h"

namespace hearth::controller {

/// Remembers for each pool how its creates went: after a failure the next waits, longer each time;
/// after three in a row, or without the layer that all need, the pool is degraded. Also knows how
/// long a start takes, for Retry-After. Thread-safe.
class Breaker {
public:
    explicit Breaker(const Clock& clock) : clock_(clock) {}

    struct State {
        unsigned failures = 0;               ///< in a row
        TimePoint retry_at{};                ///< no create before
        std::string reason;                  ///< why it is degraded: the layer's, else `failure`
        std::string failure;                 ///< of the last create that failed
        std::optional<std::string> prewarm;  ///< what was missing at the last one; "": nothing
        double start_seconds = 0.1;          ///< moving average of successful starts
        bool no_layer = false;               ///< its packages cannot be had: nothing can be made
        bool degraded() const { return failures >= 3 || no_layer; }
    };

    void succeeded(const std::string& pool, std::chrono::nanoseconds took);
    void failed(const std::string& pool, const std::string& reason);
    /// Why there is no layer with its packages, so that nothing can be made: degraded at once;
    /// "": there is one, or none is needed.
    void layer(const std::string& pool, const std::string& failure);
    /// How the last prewarm of the pool went: empty if it has all that was asked for. True if that
    /// is news.
    bool prewarmed(const std::string& pool, const std::string& missing);
    void forget(const std::string& pool);
    State state(const std::string& pool) const;

private:
    const Clock& clock_;
    mutable std::mutex mutex_;
    std::map<std::string, State> states_;  // guarded by mutex_
};

}  // namespace hearth::controller
