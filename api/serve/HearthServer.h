#pragma once

#include "api/config/ServeConfig.h"
#include "api/serve/PrivilegedSetup.h"

namespace hearth::program {

/// `hearth serve`: builds the object graph, serves until a signal, and takes the graph down again.
/// Returns the exit status. Call it once, while the process has one thread; throws if the start
/// fails.
int serve(const cli::ServeConfig& config, const Replacements& replaced = {});

}  // namespace hearth::program
