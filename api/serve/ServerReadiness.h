#pragma once

#include <atomic>
#include <string>
#include <utility>

#include "api/serve/StartupGate.h"
#include "api/serve/process/SignalThread.h"
#include "base/Clock.h"
#include "controller/ControlPlane.h"

namespace hearth::program {

/// Ready when every pool was filled once, or after a grace period: a pool that cannot be filled is
/// Degraded, and the others serve. Thread-safe.
class ServerReadiness {
public:
    ServerReadiness(const controller::ControlPlane& plane, const StartupGate& gate,
                    const SignalThread& signals)
        : plane_(plane), gate_(gate), signals_(signals) {}

    /// The start is over; the pools are filled from now on.
    void begin();
    /// The server stops. Never ready again.
    void stop() { stopping_ = true; }
    /// Returns whether the server is ready, and its state in words.
    std::pair<bool, std::string> look();

private:
    bool fills(const controller::Pool& pool) const;
    /// True if the pool's next sandbox waits for a GPU that is in use elsewhere or unusable.
    bool lacksGpus(const controller::Pool& pool) const;

    const controller::ControlPlane& plane_;
    const StartupGate& gate_;
    const SignalThread& signals_;
    std::atomic<bool> stopping_{false};
    std::atomic<bool> warmed_up_{false};
    TimePoint started_at_{};  ///< set before begun_
    std::atomic<bool> begun_{false};
};

}  // namespace hearth::program
