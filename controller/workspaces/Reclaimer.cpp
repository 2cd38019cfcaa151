#include "controller/workspaces/Reclaimer.h"

#include <algorithm>

namespace hearth::controller {
namespace {

// Deadlines move both ways while the thread sleeps. Checking every workspace costs microseconds,
// so the thread simply checks often enough.
constexpr auto kLongestSleep = std::chrono::milliseconds(250);

}  // namespace

Reclaimer::Reclaimer(WorkspaceTable& table, WorkspaceTerminator& terminator, Pauser& pauser,
                     const Clock& clock)
    : table_(table), terminator_(terminator), pauser_(pauser), clock_(clock) {}

Reclaimer::~Reclaimer() {
    thread_.request_stop();
    wake_.notifyAll();
}

void Reclaimer::start() {
    thread_ = std::jthread([this](const std::stop_token& stop) {
        while (!stop.stop_requested()) {
            const TimePoint next = sweep();
            const auto left = std::clamp<std::chrono::nanoseconds>(
                next - clock_.now(), std::chrono::milliseconds(1), kLongestSleep);
            const MutexLock lock(mutex_);
            wake_.waitFor(mutex_, stop, left, [] { return false; });
        }
    });
}

TimePoint Reclaimer::sweep() {
    const TimePoint now = clock_.now();
    TimePoint next = now + kLongestSleep;
    std::map<std::string, std::size_t> paused;
    for (const std::shared_ptr<Workspace>& workspace : table_.all()) {
        if (workspace->paused()) ++paused[workspace->facts().pool];
        const std::optional<EndReason> reason = workspace->due(now);
        if (reason == EndReason::Idle && workspace->facts().pause_when_idle) {
            pauser_.soon(*workspace);
        } else if (reason) {
            terminator_.reclaim(workspace, *reason, now);
        } else {
            if (const std::optional<NearEnd> end = workspace->warning(now)) {
                terminator_.warn(*workspace, *end, now);
            }
            next = std::min(next, workspace->nextDue());
        }
    }
    pauser_.publish(paused);
    return next;
}

}  // namespace hearth::controller
