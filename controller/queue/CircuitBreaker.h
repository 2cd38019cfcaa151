#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/Clock.h"
#include "base/Mutex.h"

namespace hearth::controller {

/// Records for each pool how its creates went. After a failure the next one waits, longer each
/// time. After three in a row, without the layer that all need, or without room on the disk, the
/// pool is degraded. Also knows how long a start takes, for Retry-After. Thread-safe.
class CircuitBreaker {
public:
    explicit CircuitBreaker(const Clock& clock) : clock_(clock) {}

    struct State {
        unsigned failures = 0;  ///< in a row
        TimePoint retry_at{};   ///< no create before this
        /// Why it is degraded: the layer's reason, else the disk's, else `failure`.
        std::string reason;
        std::string failure;                 ///< the reason of the last create that failed
        bool full = false;                   ///< it failed because a disk is full
        std::optional<std::string> prewarm;  ///< the failed steps of the last one; "": none
        double start_seconds = 0.1;          ///< moving average of successful starts
        bool no_layer = false;  ///< its packages cannot be installed: nothing can be made
        std::string layer;      ///< the reason
        std::string no_room;    ///< why its next sandbox has no room on the disk
        std::string no_gpus;    ///< why its next sandbox gets no GPUs now: it waits, no failure
        std::string unpacking;  ///< the image that its creates wait for; empty: none
        TimePoint unpacked_at = TimePoint::min();  ///< when they last waited for one
        bool createsFail() const { return failures >= 3; }
        bool degraded() const { return createsFail() || no_layer || !no_room.empty(); }
        /// True if it is degraded only for want of disk.
        bool diskFull() const { return degraded() && !no_layer && (!no_room.empty() || full); }
    };

    void succeeded(const std::string& pool, std::chrono::nanoseconds took);
    /// `full`: because a disk is full.
    void failed(const std::string& pool, const std::string& reason, bool full = false);
    /// Sets why the disk has no room for its next sandbox: degraded at once; "": there is room.
    void room(const std::string& pool, const std::string& refusal);
    /// Sets why no GPUs are free for its next sandbox; "": it has them, or needs none.
    void gpus(const std::string& pool, const std::string& lack);
    /// Sets the image that its creates wait for; "": it is ready. True if that has changed.
    bool unpacking(const std::string& pool, const std::string& image);
    /// True if creates have waited for an image to be unpacked at some time since then.
    bool unpacksSince(const std::string& pool, TimePoint since) const;
    /// Sets why there is no layer with its packages, so that nothing can be made: degraded at once;
    /// "": there is one, or none is needed.
    void layer(const std::string& pool, const std::string& failure);
    /// Sets the outcome of the pool's last prewarm: empty if nothing is missing. True if that
    /// has changed.
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
