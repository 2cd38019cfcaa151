#pragma once

#include <array>
#include <chrono>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <utility>

#include "base/Alarm.h"
#include "base/Clock.h"
#include "base/Mutex.h"
#include "base/trace/TraceContext.h"
#include "controller/queue/DelayedKeys.h"
#include "controller/queue/Lanes.h"
#include "controller/queue/WorkLine.h"
#include "metrics/Metrics.h"

namespace hearth::controller {

/// An object to reconcile: a kind and a name. Never an event. Groups, which are pools or tenants,
/// take turns in the kind's lane; group and cause are no part of the key.
struct WorkKey {
    WorkKind kind;
    std::string name;
    std::string group{};
    TraceContext cause{};  ///< the first span that asked for it; none if it is not recorded

    friend bool operator==(const WorkKey& a, const WorkKey& b) {
        return a.kind == b.kind && a.name == b.name;
    }
    friend std::strong_ordering operator<=>(const WorkKey& a, const WorkKey& b) {
        const std::strong_ordering kinds = a.kind <=> b.kind;
        return kinds == std::strong_ordering::equal ? a.name <=> b.name : kinds;
    }
};

/// The process's only queue, in lanes by kind. Removes duplicates. Never gives one key to two
/// workers at once (a key added during its work comes back afterwards), nor the create and the
/// end of one sandbox; failed keys come back after a growing delay. Modelled on client-go's work
/// queue. Thread-safe.
class WorkQueue {
public:
    WorkQueue(const Clock& clock, metrics::Metrics& metrics);

    void add(const WorkKey& key);
    /// Adds a key that is due after `delay`; an earlier time takes precedence over a later one.
    void addAfter(const WorkKey& key, std::chrono::nanoseconds delay);
    /// Adds a failed key again: after 100 ms, doubled each time up to 30 s, with jitter.
    void retry(const WorkKey& key);
    /// Resets the count of this key's failures.
    void settled(const WorkKey& key);

    /// Blocks for the lane's next key; nullopt when stopped. keepTime() adds delayed keys.
    std::optional<WorkKey> take(Lane lane, const std::stop_token& stop);
    /// Makes delayed keys ready when they are due; one thread runs it until stopped. It has its own
    /// thread so that addAfter() need not wake a worker: claims call it before they answer.
    void keepTime(const std::stop_token& stop);
    /// Takes the next due key of any lane, without waiting: for tests that empty the queue.
    std::optional<WorkKey> takeDue();
    /// Must follow each take, when the work is done.
    void done(const WorkKey& key);

    /// Wakes every waiting thread, for good (shutdown).
    void wakeAll();
    bool idle() const;

private:
    /// The object that only one worker at a time may have: a key, or a sandbox.
    using Subject = std::pair<WorkKind, std::string>;
    struct Waiting {
        explicit Waiting(const LaneRules& rules) : line(rules) {}
        WorkLine<WorkKey> line;
        StoppableCondition wake;
    };
    struct AtWork {
        Lane lane;
        std::string group;
    };

    /// The number of keys added to each lane: that many of its workers are woken, outside the lock.
    using Wakes = std::array<unsigned, kLanes>;

    static Subject subjectOf(const WorkKey& key);
    static std::string groupOf(const WorkKey& key);
    Waiting& waitingIn(Lane lane) HEARTH_REQUIRES(mutex_) {
        return lanes_[static_cast<std::size_t>(lane)];
    }
    void promoteDue(TimePoint now, Wakes& wakes) HEARTH_REQUIRES(mutex_);
    void setAlarm(TimePoint now) HEARTH_REQUIRES(mutex_);
    std::optional<WorkKey> pop(Lane lane) HEARTH_REQUIRES(mutex_);
    void addLocked(const WorkKey& key, Wakes& wakes) HEARTH_REQUIRES(mutex_);
    void wake(const Wakes& wakes);
    void tellDepth(Lane lane) HEARTH_REQUIRES(mutex_);

    const Clock& clock_;
    metrics::Metrics& metrics_;
    mutable Mutex mutex_;
    bool ending_ HEARTH_GUARDED_BY(mutex_) = false;
    Alarm alarm_;                        // set while mutex_ is held
    std::array<Waiting, kLanes> lanes_;  // fixed; their changing parts are reached by waitingIn()
    std::set<WorkKey> waiting_ HEARTH_GUARDED_BY(mutex_);  // the keys in lines
    std::map<Subject, AtWork> working_ HEARTH_GUARDED_BY(mutex_);
    std::set<WorkKey> again_ HEARTH_GUARDED_BY(mutex_);  // added during their work
    DelayedKeys<WorkKey> delayed_ HEARTH_GUARDED_BY(mutex_);
    std::map<WorkKey, unsigned> failures_ HEARTH_GUARDED_BY(mutex_);
    std::uint64_t jitter_ HEARTH_GUARDED_BY(mutex_) = 88172645463325252ULL;
};

}  // namespace hearth::controller
