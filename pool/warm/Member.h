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

/// A sandbox goes forward only; no edge leads back to Ready.
enum class Phase { Creating, Warming, Ready, Claimed, Draining, Failed };

inline constexpr Texts<Phase, 6> kPhases{
    {"Creating", "Warming", "Ready", "Claimed", "Draining", "Failed"}};
/// Not claimed by anybody yet, and not on its way out: it may be retired.
constexpr bool isWarm(Phase phase) noexcept {
    return phase == Phase::Creating || phase == Phase::Warming || phase == Phase::Ready;
}

/// The times that the steps of a start took.
struct StartTimes {
    std::chrono::nanoseconds create{0};  ///< until its agent could be connected to
    std::chrono::nanoseconds warm{0};    ///< until it had answered
    std::uint64_t cpu_ns = 0;            ///< processor time that it used for them
};

/// One sandbox of a pool. What stands under "fixed" never changes after the member is made; the
/// rest belongs to WarmPool and is read through snapshots.
struct Member {
    // fixed
    SandboxId id;
    std::string pool;
    std::string template_hash;  ///< of the spec it was made from
    std::int64_t generation = 0;
    std::string image;
    SandboxLimits limits;
    std::uint64_t disk_bytes = 0;   ///< promised to its workspace
    std::vector<std::string> gpus;  ///< uuids of its devices
    WallTime created{};
    TimePoint created_at{};
    /// Found at the start, and its agent has not answered yet: Claimed until it is known what it
    /// is.
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
