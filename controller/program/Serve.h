#pragma once

#include "api/cli/ServeConfig.h"

namespace hearth::program {

/// `hearth serve`: builds the object graph, serves until a signal ends it, and takes it down again.
/// Gives the exit status. To be called once, while the process has one thread; throws what hinders
/// the start.
int serve(const cli::ServeConfig& config);

}  // namespace hearth::program
