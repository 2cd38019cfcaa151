#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "controller/contract/ClaimPatience.h"

namespace hearth::mcp::seeds {

/// One at a time for each key: for calls that look whether something is there and make it if not.
/// Callers of other keys never wait for each other. Thread-safe.
class NamedLocks {
public:
    /// Blocks until no other turn of this key is held, if `patience` may; the turn ends with the
    /// returned object, which the turns must outlive. Throws Error(Unavailable) where the wait is
    /// taken back or has lasted for its most, MustWait where there must be none.
    std::shared_ptr<void> take(const std::string& key, const controller::ClaimPatience& patience) {
        std::unique_lock lock(mutex_);
        const auto free = [&] { return !held_.contains(key); };
        if (!patience.waits && !free()) throw controller::MustWait("another call for the same");
        if (!ended_.wait_for(lock, patience.stop, patience.most, free)) {
            if (patience.stop.stop_requested()) throw controller::takenBack();
            throw Error(ErrorCode::Unavailable, "another call for the same still goes on")
                .hint("try again when it has ended")
                .retryAfter(std::chrono::seconds(5));
        }
        const auto place = held_.insert(key).first;
        return {nullptr, [this, place](void*) {
                    const std::lock_guard ending(mutex_);
                    held_.erase(place);
                    ended_.notify_all();
                }};
    }

private:
    std::mutex mutex_;
    std::condition_variable_any ended_;
    std::set<std::string> held_;  ///< guarded by mutex_
};

}  // namespace hearth::mcp::seeds
