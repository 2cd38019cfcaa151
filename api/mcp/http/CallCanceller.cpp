#include "api/mcp/http/CallCanceller.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/Error.h"

namespace hearth::mcp {
namespace {

constexpr std::chrono::nanoseconds kLongestWait = std::chrono::seconds(60);
constexpr controller::LaneRules kCancelLane{"cancels", 8, 6};
constexpr unsigned kDoublings = 5;

/// True if another attempt would get the same error.
bool isFinal(ErrorCode code) {
    return code == ErrorCode::NotFound || code == ErrorCode::Gone || code == ErrorCode::Conflict ||
           code == ErrorCode::Forbidden;
}

}  // namespace

CallCanceller::CallCanceller(const Clock& clock, metrics::Log& log, std::chrono::milliseconds pause)
    : clock_(clock), log_(log), pause_(pause), line_(kCancelLane) {
    for (unsigned i = 0; i < kCancelLane.workers; ++i) {
        threads_.emplace_back([this](const std::stop_token& stop) { run(stop); });
    }
}

CallCanceller::~CallCanceller() {
    // Stops all before the first join, because each may have to wait for an agent.
    for (std::jthread& thread : threads_) thread.request_stop();
}

CallCanceller::Job CallCanceller::jobOf(const PendingToolCall& call) {
    return {call.tenant, call.pending.work, call.pending.cancel, call.place};
}

std::function<void()> CallCanceller::cancelLater(const PendingToolCall& call) {
    return [this, job = jobOf(call)] { push(job); };
}

void CallCanceller::push(const Job& job) {
    const MutexLock lock(mutex_);
    line_.push(job.tenant, job);
    ++changes_;
    changed_.notifyAll();
}

void CallCanceller::run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
        std::optional<Job> job;
        {
            const MutexLock lock(mutex_);
            ripen();
            job = line_.pop();
            if (!job) {
                changed_.waitFor(mutex_, stop, untilNext(),
                                 [this, seen = changes_]()
                                     HEARTH_REQUIRES(mutex_) { return changes_ != seen; });
                continue;
            }
        }
        const bool again = attempt(*job);
        const MutexLock lock(mutex_);
        line_.done(job->tenant);
        if (again) {
            const auto pause = pause_ * (1U << std::min(job->failures - 1, kDoublings));
            pausing_.emplace(clock_.now() + pause, std::move(*job));
        }
        ++changes_;
        changed_.notifyAll();
    }
}

bool CallCanceller::attempt(Job& job) {
    try {
        if (!job.work->finished()) job.cancel();
        return false;
    } catch (const Error& error) {
        log_.info("mcp.cancel_failed", {{"error", error.what()}});
        if (isFinal(error.code())) return false;
    } catch (const std::exception& error) {
        log_.info("mcp.cancel_failed", {{"error", error.what()}});
    }
    return ++job.failures < kTries;
}

void CallCanceller::ripen() {
    const TimePoint now = clock_.now();
    while (!pausing_.empty() && pausing_.begin()->first <= now) {
        const auto first = pausing_.extract(pausing_.begin());
        line_.push(first.mapped().tenant, first.mapped());
    }
}

std::chrono::nanoseconds CallCanceller::untilNext() const {
    if (pausing_.empty()) return kLongestWait;
    const std::chrono::nanoseconds left = pausing_.begin()->first - clock_.now();
    return std::clamp<std::chrono::nanoseconds>(left, std::chrono::milliseconds(1), kLongestWait);
}

}  // namespace hearth::mcp
