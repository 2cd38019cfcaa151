#pragma once

#include <functional>
#include <list>
#include <memory>
#include <vector>

#include "base/Mutex.h"

namespace hearth {

/// Callbacks that report a change. Thread-safe; no lock is held while one runs, so a callback may
/// do anything except block. A call may still run when its subscription has just ended: callbacks
/// own the objects they touch (shared or weak pointers).
class Subscribers {
public:
    /// The subscription ends with the returned object.
    std::shared_ptr<void> add(std::function<void()> changed) {
        auto entry = std::make_shared<std::function<void()>>(std::move(changed));
        const MutexLock lock(mutex_);
        entries_.emplace_back(entry);
        return entry;
    }

    void notify() {
        std::vector<std::shared_ptr<std::function<void()>>> alive;
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
        for (const auto& entry : alive) (*entry)();
    }

private:
    Mutex mutex_;
    std::list<std::weak_ptr<std::function<void()>>> entries_ HEARTH_GUARDED_BY(mutex_);
};

}  // namespace hearth
