#pragma once

namespace hearth::controller {

/// The id of the execution of `prewarm.command`. No tenant has it: the server makes their ids.
inline constexpr const char* kPrewarmExecution = "prewarm";

}  // namespace hearth::controller
