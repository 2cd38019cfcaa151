#pragma once

#include <memory>
#include <set>
#include <string>

#include "base/Mutex.h"
#include "controller/contract/ClaimPatience.h"

namespace hearth::mcp::seeds {

/// One caller at a time for each key, for calls that check whether a thing exists and else make it.
/// Callers of different keys never wait for each other. Thread-safe.
class NamedLocks {
public:
    /// Blocks until no other turn of this key is held, if `patience` allows waiting. The turn ends
    /// with the returned object, which must not outlive this one. Throws Error(Unavailable) if the
    /// wait is cancelled or takes longer than allowed, MustWait if no wait is allowed.
    std::shared_ptr<void> take(const std::string& key, const controller::ClaimPatience& patience) {
        const MutexLock lock(mutex_);
        const auto free = [&]() HEARTH_REQUIRES(mutex_) { return !held_.contains(key); };
        if (!patience.waits && !free()) throw controller::MustWait("another call for the same");
        if (!ended_.waitFor(mutex_, patience.stop, patience.most, free)) {
            if (patience.stop.stop_requested()) throw controller::takenBack();
            throw Error(ErrorCode::Unavailable, "another call for the same still goes on")
                .hint("try again when it has ended")
                .retryAfter(std::chrono::seconds(5));
        }
        const auto place = held_.insert(key).first;
        return {nullptr, [this, place](void*) {
                    const MutexLock ending(mutex_);
                    held_.erase(place);
                    ended_.notifyAll();
                }};
    }

private:
    Mutex mutex_;
    StoppableCondition ended_;
    std::set<std::string> held_ HEARTH_GUARDED_BY(mutex_);
};

}  // namespace hearth::mcp::seeds
