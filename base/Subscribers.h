#pragma once

#include <functional>
#include <list>
#include <memory>
#include <vector>

#include "base/Mutex.h"

namespace hearth {

/// Callbacks that report a change with its arguments. Thread-safe; no lock is held while one runs,
/// so a callback may do anything except block. A call may still run when its subscription has just
/// ended: callbacks own the objects they touch (shared or weak pointers).
template <typename... About>
class SubscribersTo {
public:
    using Callback = std::function<void(const About&...)>;

    /// The subscription ends with the returned object.
    std::shared_ptr<void> add(Callback changed) {
        auto entry = std::make_shared<Callback>(std::move(changed));
        const MutexLock lock(mutex_);
        entries_.emplace_back(entry);
        return entry;
    }

    void notify(const About&... about) {
        std::vector<std::shared_ptr<Callback>> alive;
        {
            const MutexLock lock(mutex_);
            for (auto it = entries_.begin(); it != entries_.end();) {
                if (auto entry = it->lock()) {
                    alive.push_back(std::move(entry));
                    ++it;
                } else {
                    it = entries_.erase(it);
                }
            }
        }
        for (const auto& entry : alive) (*entry)(about...);
    }

private:
    Mutex mutex_;
    std::list<std::weak_ptr<Callback>> entries_ HEARTH_GUARDED_BY(mutex_);
};

using Subscribers = SubscribersTo<>;

}  // namespace hearth
