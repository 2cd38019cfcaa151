#pragma once

#include <cstdint>

#include "base/Texts.h"

namespace hearth {

/// The reason why a workspace has ended or a sandbox was retired.
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
    Operator,
    OneShot,
    Node,
    Oom,
    OpenFiles,
};

/// The names in metrics, events, the journal and `410 Gone`.
inline constexpr Texts<EndReason, 17> kEndReasons{
    {"deleted", "idle", "lifetime", "schedule", "lost", "failed", "shrink", "age", "replaced",
     "preempted", "drain", "shutdown", "operator", "one_shot", "node", "oom", "open_files"}};

/// The same for people, after "it has ended: ".
inline constexpr Texts<EndReason, 17> kEndSentences{
    {"its owner deleted it", "it was idle for too long", "its lifetime has ended",
     "a schedule of its pool retired it", "its sandbox was lost", "it could not be set up",
     "its pool became smaller", "it was too old", "its pool's template changed",
     "other work took its place", "its pool was drained", "the server stopped and ended everything",
     "an operator deleted it", "its only execution has ended", "its node takes no more work",
     "its sandbox ran out of memory", "its sandbox held too many of the machine's open files"}};

}  // namespace hearth
