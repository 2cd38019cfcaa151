#pragma once

#include <atomic>
#include <functional>

#include "base/Mutex.h"

namespace hearth::controller {

/// Knows if the processes of one workspace's sandbox run. A caller that needs them holds the gate;
/// a held sandbox is never frozen. Freezing and thawing happen under its lock, so a call that
/// comes meanwhile waits for the outcome. Thread-safe.
class PauseGate {
public:
    enum class Held {
        Awake,    ///< it was already running
        Resumed,  ///< `thaw` resumed it
        No,       ///< `thaw` failed: nothing is held
    };
    Held hold(const std::function<bool()>& thaw);
    /// The same, but a paused sandbox stays paused: returns false.
    bool holdIfAwake();
    /// Must follow each successful hold.
    void release();

    enum class Pause {
        Done,    ///< it is paused now, or was before
        InUse,   ///< it is held, or `idle` returned false
        Failed,  ///< `freeze` failed
    };
    /// Calls `idle` and `freeze` while no other call can take hold of the gate.
    Pause pause(const std::function<bool()>& idle, const std::function<bool()>& freeze);
    bool paused() const noexcept { return paused_; }

private:
    Mutex mutex_;
    unsigned holders_ HEARTH_GUARDED_BY(mutex_) = 0;
    std::atomic<bool> paused_ = false;  ///< changes only under the lock
};

}  // namespace hearth::controller
