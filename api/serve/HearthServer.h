#pragma once

#include "api/config/ServeConfig.h"
#include "api/serve/runtimes/RuntimeFactory.h"

namespace hearth::program {

/// `hearth serve`: builds the object graph, serves until a signal, and takes the graph down again.
/// Returns the exit status. Call it once, while the process has one thread; throws if the start
/// fails. `runtime`, if given, replaces the runtime of the configuration.
int serve(const cli::ServeConfig& config, const RuntimeFactory* runtime = nullptr);

}  // namespace hearth::program
