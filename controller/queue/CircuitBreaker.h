#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/Clock.h"
#include "base/Mutex.h"

namespace hearth::controller {

/// Remembers for each pool how its creates went: after a failure the next waits, longer each time;
/// after three in a row, without the layer that all need, or without room on the disk, the pool is
/// degraded. Also knows how long a start takes, for Retry-After. Thread-safe.
class CircuitBreaker {
public:
    explicit CircuitBreaker(const Clock& clock) : clock_(clock) {}

    struct State {
        unsigned failures = 0;  ///< in a row
        TimePoint retry_at{};   ///< no create before
        /// Why it is degraded: the layer's reason, else the disk's, else `failure`.
        std::string reason;
        std::string failure;                 ///< of the last create that failed
        bool full = false;                   ///< it failed because a disk is full
        std::optional<std::string> prewarm;  ///< what was missing at the last one; "": nothing
        double start_seconds = 0.1;          ///< moving average of successful starts
        bool no_layer = false;  ///< its packages cannot be installed: nothing can be made
        std::string layer;      ///< why
        std::string no_room;    ///< why its next sandbox has no room on the disk
        std::string no_gpus;    ///< why its next sandbox gets no GPUs now: waited for, no failure
        std::string unpacking;  ///< the image that its creates wait for; empty: none
        TimePoint unpacked_at = TimePoint::min();  ///< when they waited for one last
        bool degraded() const { return failures >= 3 || no_layer || !no_room.empty(); }
        /// It is degraded for want of disk, and only for that.
        bool diskFull() const { return degraded() && !no_layer && (!no_room.empty() || full); }
    };

    void succeeded(const std::string& pool, std::chrono::nanoseconds took);
    /// `full`: because a disk is full.
    void failed(const std::string& pool, const std::string& reason, bool full = false);
    /// Why the disk has no room for its next sandbox: degraded at once; "": it has.
    void room(const std::string& pool, const std::string& refusal);
    /// Why no GPUs are free for its next sandbox; "": it has them, or needs none.
    void gpus(const std::string& pool, const std::string& lack);
    /// The image that its creates wait for; "": it is ready. True if that is news.
    bool unpacking(const std::string& pool, const std::string& image);
    /// An image that its creates waited for was unpacked at some time since then.
    bool unpacksSince(const std::string& pool, TimePoint since) const;
    /// Why there is no layer with its packages, so that nothing can be made: degraded at once;
    /// "": there is one, or none is needed.
    void layer(const std::string& pool, const std::string& failure);
    /// How the last prewarm of the pool went: empty if it has all that was asked for. True if that
    /// is news.
    bool prewarmed(const std::string& pool, const std::string& missing);
    void forget(const std::string& pool);
    State state(const std::string& pool) const;

private:
    static void judge(State& state);
    void endUnpacking(State& state);

    const Clock& clock_;
    mutable Mutex mutex_;
    std::map<std::string, State> states_ HEARTH_GUARDED_BY(mutex_);
};

}  // namespace hearth::controller
