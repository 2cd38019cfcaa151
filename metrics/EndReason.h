#pragma once

#include <cstdint>

#include "base/Texts.h"

namespace hearth {

/// Why a workspace has ended or a sandbox was retired.
enum class EndReason : std::uint8_t {
    Deleted,
    Idle,
    Lifetime,
    Schedule,
    Lost,
    Failed,
    Shrink,
    Age,
    Replaced,
    Preempted,
    Drain,
    Shutdown,
};

/// As metrics, events, the journal and `410 Gone` have it.
inline constexpr Texts<EndReason, 12> kEndReasons{{"deleted", "idle", "lifetime", "schedule",
                                                   "lost", "failed", "shrink", "age", "replaced",
                                                   "preempted", "drain", "shutdown"}};

}  // namespace hearth
