#pragma once

#include <chrono>
#include <compare>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>

#include "base/Alarm.h"
#include "base/Clock.h"
#include "metrics/Metrics.h"

namespace hearth::controller {

/// What there is to reconcile: a kind ("pool", "sandbox") and a name. Never an event.
struct WorkKey {
    std::string kind;
    std::string name;
    auto operator<=>(const WorkKey&) const = default;
};

/// The one queue of the process. De-duplicates; never hands one key to two workers at once (added
/// while it is worked on, it comes back afterwards); failed keys come back after a growing delay.
/// Shape after client-go's work queue. Thread-safe.
class WorkQueue {
public:
    WorkQueue(const Clock& clock, metrics::Metrics& metrics) : clock_(clock), metrics_(metrics) {}

    void add(const WorkKey& key);
    /// Not before `delay` has passed; an earlier time wins over a later one.
    void addAfter(const WorkKey& key, std::chrono::nanoseconds delay);
    /// After a failure: 100 ms, doubled each time up to 30 s, with jitter.
    void retry(const WorkKey& key);
    /// The failures of this key are over.
    void settled(const WorkKey& key);

    /// Blocks for the next key; nullopt when stopped. What was delayed comes when keepTime() runs.
    std::optional<WorkKey> take(const std::stop_token& stop);
    /// Makes delayed keys ready when their time has come; one thread runs it until stopped. A
    /// thread of its own, so that addAfter() wakes nobody: claims call it before they answer.
    void keepTime(const std::stop_token& stop);
    /// The next key that is due, without waiting: for tests that run the queue dry.
    std::optional<WorkKey> takeDue();
    /// Must follow each take, when the work is done.
    void done(const WorkKey& key);

    /// Wakes every waiting thread (shutdown).
    void wakeAll();
    bool idle() const;

private:
    /// How many it was.
    std::size_t promoteDue(TimePoint now);
    void setAlarm(TimePoint now);
    std::optional<WorkKey> pop();
    void addLocked(const WorkKey& key);

    const Clock& clock_;
    metrics::Metrics& metrics_;
    mutable std::mutex mutex_;
    std::condition_variable_any wake_;
    Alarm alarm_;                                  // set while mutex_ is held
    std::deque<WorkKey> ready_;                    // guarded by mutex_
    std::set<WorkKey> waiting_;                    // guarded by mutex_; what is in ready_
    std::set<WorkKey> working_;                    // guarded by mutex_
    std::set<WorkKey> again_;                      // guarded by mutex_; added while worked on
    std::map<WorkKey, TimePoint> delayed_;         // guarded by mutex_
    std::map<WorkKey, unsigned> failures_;         // guarded by mutex_
    std::uint64_t jitter_ = 88172645463325252ULL;  // guarded by mutex_
};

}  // namespace hearth::controller
