#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/Clock.h"
#include "base/Texts.h"
#include "pool/agent/client/AgentClient.h"
#include "pool/spec/SandboxSpec.h"

namespace hearth::pool {

/// The phase of a sandbox; it only goes forward, except that an undone claim returns to Ready.
enum class Phase { Creating, Warming, Ready, Claimed, Draining, Failed };

inline constexpr Texts<Phase, 6> kPhases{
    {"Creating", "Warming", "Ready", "Claimed", "Draining", "Failed"}};
/// True for a sandbox that is neither claimed nor being removed: it may be retired.
constexpr bool isWarm(Phase phase) noexcept {
    return phase == Phase::Creating || phase == Phase::Warming || phase == Phase::Ready;
}

/// The durations of the steps of a start.
struct StartTimes {
    std::chrono::nanoseconds create{0};  ///< until its agent accepted connections
    std::chrono::nanoseconds warm{0};    ///< until the agent had answered
    std::uint64_t cpu_ns = 0;            ///< processor time used for both
};

/// One sandbox of a pool. The fields under "fixed" never change after the member is made; the
/// others belong to WarmPool and are read from snapshots.
struct Member {
    // fixed
    SandboxId id;
    std::string pool;
    std::string template_hash;  ///< of the spec that it was made from
    std::int64_t generation = 0;
    std::string image;
    SandboxLimits limits;
    std::uint64_t disk_bytes = 0;   ///< promised to its workspace
    std::vector<std::string> gpus;  ///< uuids of its devices
    WallTime created{};
    TimePoint created_at{};
    /// Found at the start, and its agent has not answered yet: counts as Claimed until its state is
    /// known.
    bool unasked = false;

    // guarded by WarmPool's mutex
    Phase phase = Phase::Creating;
    std::shared_ptr<agent::AgentClient> agent;  ///< from Ready on
    std::optional<WallTime> ready;
    StartTimes start;
    std::string workspace;
    std::string tenant;
};

}  // namespace hearth::pool
