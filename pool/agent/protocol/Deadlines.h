#pragma once

#include <algorithm>
#include <cstdint>

namespace hearth::agent {

/// The time when a sandbox ends on its own: by its lifetime, or by idleness. Idle means that no
/// execution runs and nothing counted as activity for the idle timeout. Nanoseconds of
/// CLOCK_BOOTTIME, 0 is never. Pure arithmetic; not thread-safe.
class Deadlines {
public:
    /// The server acts first; the agent acts itself this much later.
    static constexpr std::int64_t kGraceNs = 2'000'000'000;
    /// The time in which a server that thaws a sandbox must ask it before the sandbox ends itself.
    static constexpr std::int64_t kThawedNs = 10'000'000'000;

    void setExpiresAt(std::int64_t at_ns) noexcept {
        expires_at_ns_ = std::max<std::int64_t>(at_ns, 0);
    }
    void setIdleTimeout(std::int64_t ms) noexcept {
        idle_timeout_ms_ = std::clamp<std::int64_t>(ms, 0, kMaxIdleMs);
    }

    /// False: idleness is reported, but only the server acts on it.
    void setIdleEnds(bool ends) noexcept { idle_ends_ = ends; }

    void touch(std::int64_t now_ns) noexcept {
        last_activity_ns_ = std::max(last_activity_ns_, now_ns);
    }
    void started(std::int64_t now_ns) noexcept {
        ++running_;
        touch(now_ns);
    }
    void ended(std::int64_t now_ns) noexcept {
        if (running_ > 0) --running_;
        touch(now_ns);
    }

    std::int64_t expiresAtNs() const noexcept { return expires_at_ns_; }
    std::int64_t idleTimeoutMs() const noexcept { return idle_timeout_ms_; }
    std::int64_t lastActivityNs() const noexcept { return last_activity_ns_; }
    int running() const noexcept { return running_; }

    /// The time when it will have been idle for the timeout, if nothing happens before; 0 while
    /// something runs, or for never.
    std::int64_t idleAtNs() const noexcept {
        if (running_ > 0 || idle_timeout_ms_ == 0) return 0;
        return last_activity_ns_ + idle_timeout_ms_ * 1'000'000;
    }

    /// The agent is awake at this moment. Without `idleEnds` it may have been frozen past its end:
    /// then the server that thawed it ends it, and gives the reason.
    void awake(std::int64_t now_ns) noexcept {
        const std::int64_t end = plainEndNs();
        if (idle_ends_ || end == 0 || thawed_ns_ >= end || now_ns - end < kLateNs) return;
        thawed_ns_ = now_ns;
    }
    /// The time when the agent itself ends the sandbox; 0 for never.
    std::int64_t endsAtNs() const noexcept {
        const std::int64_t end = plainEndNs();
        return end == 0 || thawed_ns_ < end ? end : std::max(end, thawed_ns_ + kThawedNs);
    }

private:
    std::int64_t plainEndNs() const noexcept {
        const std::int64_t idle = idle_ends_ ? idleAtNs() : 0;
        std::int64_t first = expires_at_ns_;
        if (idle != 0 && (first == 0 || idle < first)) first = idle;
        return first == 0 || first > INT64_MAX - kGraceNs ? 0 : first + kGraceNs;
    }

    /// Timers are more exact than this; a longer wait costs nothing.
    static constexpr std::int64_t kLateNs = 20'000'000;
    static constexpr std::int64_t kMaxIdleMs = 1'000LL * 60 * 60 * 24 * 365 * 10;

    std::int64_t expires_at_ns_ = 0;
    std::int64_t idle_timeout_ms_ = 0;
    std::int64_t last_activity_ns_ = 0;
    bool idle_ends_ = true;
    std::int64_t thawed_ns_ = 0;  ///< when it was found frozen past its end
    int running_ = 0;
};

}  // namespace hearth::agent
