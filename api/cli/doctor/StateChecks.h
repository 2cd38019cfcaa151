#pragma once

#include "api/cli/doctor/Finding.h"
#include "api/command/Command.h"
#include "api/config/ServeConfig.h"

namespace hearth::cli {

/// Checks the data directory, with or without a running server: damaged databases that were kept,
/// and an instance that lost its tokens and so serves nobody. Nothing for an unused directory.
Findings checkState(const ServeConfig& config);

}  // namespace hearth::cli
