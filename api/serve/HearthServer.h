#pragma once

#include <functional>
#include <memory>

#include "api/config/ServeConfig.h"
#include "base/Clock.h"
#include "pool/runtime/ContainerRuntime.h"

namespace hearth::program {

/// Makes a runtime that needs nothing prepared as root. A program may give the server one in place
/// of those that the configuration chooses from.
using RuntimeFactory = std::function<std::unique_ptr<pool::ContainerRuntime>(const Clock&)>;

/// `hearth serve`: builds the object graph, serves until a signal ends it, and takes it down again.
/// Returns the exit status. Call it once, while the process has one thread; throws if the start
/// fails. `runtime`, if given, replaces the runtime of the configuration.
int serve(const cli::ServeConfig& config, const RuntimeFactory& runtime = {});

}  // namespace hearth::program
