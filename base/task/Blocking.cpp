#include "base/task/Blocking.h"

#include <algorithm>
#include <chrono>
#include <memory>

#include "base/Mutex.h"

namespace hearth {
namespace {

/// Rung by whatever the thread waits for.
struct Bell {
    Mutex mutex;
    StoppableCondition rung;
    bool rings HEARTH_GUARDED_BY(mutex) = false;

    void ring() {
        const MutexLock lock(mutex);
        rings = true;
        rung.notifyOne();
    }
};

/// The longest sleep: a time that is never would not fit into the kernel's.
constexpr std::chrono::hours kLongest{24};

}  // namespace

bool blockOn(Waitable& wait, const Clock& clock, const std::stop_token& stop) {
    const auto bell = std::make_shared<Bell>();
    const std::shared_ptr<void> subscription = wait.subscribe([bell] { bell->ring(); });
    const TimePoint now = clock.now();
    const TimePoint until = std::clamp(wait.until(), now, now + kLongest);
    const auto end = std::chrono::steady_clock::now() + (until - now);
    while (!wait.ready()) {
        const MutexLock lock(bell->mutex);
        const bool rang = bell->rung.waitUntil(
            bell->mutex, stop, end, [&bell]() HEARTH_REQUIRES(bell->mutex) { return bell->rings; });
        if (!rang) return !stop.stop_requested();
        bell->rings = false;
    }
    return !stop.stop_requested();
}

}  // namespace hearth
