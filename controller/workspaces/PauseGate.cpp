#include "controller/workspaces/PauseGate.h"

namespace hearth::controller {

PauseGate::Held PauseGate::hold(const std::function<bool()>& thaw) {
    const MutexLock lock(mutex_);
    if (!paused_) {
        ++holders_;
        return Held::Awake;
    }
    if (!thaw()) return Held::No;
    paused_ = false;
    ++holders_;
    return Held::Resumed;
}

bool PauseGate::holdIfAwake() {
    const MutexLock lock(mutex_);
    if (paused_) return false;
    ++holders_;
    return true;
}

void PauseGate::release() {
    const MutexLock lock(mutex_);
    --holders_;
}

PauseGate::Pause PauseGate::pause(const std::function<bool()>& idle,
                                  const std::function<bool()>& freeze) {
    const MutexLock lock(mutex_);
    if (paused_) return Pause::Done;
    if (holders_ > 0 || !idle()) return Pause::InUse;
    paused_ = freeze();
    return paused_ ? Pause::Done : Pause::Failed;
}

}  // namespace hearth::controller
