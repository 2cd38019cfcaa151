#pragma once

#include "api/cli/doctor/Finding.h"
#include "api/command/Command.h"
#include "api/config/ServeConfig.h"

namespace hearth::cli {

/// The state in the data directory, whether a server runs or not: damaged databases that were kept,
/// and an instance that lost its tokens and so serves nobody. Nothing for a directory never used.
Findings checkState(const ServeConfig& config);

}  // namespace hearth::cli
