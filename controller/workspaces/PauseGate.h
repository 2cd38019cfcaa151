#pragma once

#include <atomic>
#include <functional>

#include "base/Mutex.h"

namespace hearth::controller {

/// Whether the processes of one workspace's sandbox run. Who needs them holds the gate; nobody
/// freezes a sandbox that is held. Freezing and thawing are done under its lock, so a call that
/// comes meanwhile waits for the outcome. Thread-safe.
class PauseGate {
public:
    enum class Held {
        Awake,    ///< it ran already
        Resumed,  ///< `thaw` let it go on
        No,       ///< `thaw` failed: nothing is held
    };
    Held hold(const std::function<bool()>& thaw);
    /// The same, but a paused one stays as it is: false.
    bool holdIfAwake();
    /// Must follow each hold that succeeded.
    void release();

    enum class Pause {
        Done,    ///< it is paused now, or was
        InUse,   ///< somebody holds it, or `idle` said no
        Failed,  ///< `freeze` did
    };
    /// `idle` is asked and `freeze` called while nobody can take hold of it.
    Pause pause(const std::function<bool()>& idle, const std::function<bool()>& freeze);
    bool paused() const noexcept { return paused_; }

private:
    Mutex mutex_;
    unsigned holders_ HEARTH_GUARDED_BY(mutex_) = 0;
    std::atomic<bool> paused_ = false;  ///< changes under the lock only
};

}  // namespace hearth::controller
