#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <string>

namespace hearth::mcp::seeds {

/// One at a time for each key: for calls that look whether something is there and make it if not.
/// Callers of other keys never wait for each other. Thread-safe.
class Turns {
public:
    /// Blocks until no other turn of this key is held; the turn ends with the returned object,
    /// which the turns must outlive.
    std::shared_ptr<void> take(const std::string& key) {
        std::unique_lock lock(mutex_);
        ended_.wait(lock, [&] { return !held_.contains(key); });
        const auto place = held_.insert(key).first;
        return {nullptr, [this, place](void*) {
                    const std::lock_guard ending(mutex_);
                    held_.erase(place);
                    ended_.notify_all();
                }};
    }

private:
    std::mutex mutex_;
    std::condition_variable ended_;
    std::set<std::string> held_;  ///< guarded by mutex_
};

}  // namespace hearth::mcp::seeds
