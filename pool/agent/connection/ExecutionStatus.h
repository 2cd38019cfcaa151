#pragma once

#include <cstdint>

#include "base/Texts.h"

namespace hearth::agent {

/// The state of an execution. An agent reports the first four; the server adds the others.
enum class ExecutionStatus : std::uint8_t { Ok, Failed, Timeout, Killed, Oom, Lost, Running };

inline constexpr Texts<ExecutionStatus, 7> kExecutionStatuses{
    {"ok", "failed", "timeout", "killed", "oom", "lost", "running"}};

}  // namespace hearth::agent
