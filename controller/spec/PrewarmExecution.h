#pragma once

namespace hearth::controller {

/// The execution of `prewarm.command`. None of a tenant's: their ids are made by us.
inline constexpr const char* kPrewarmExecution = "prewarm";

}  // namespace hearth::controller
