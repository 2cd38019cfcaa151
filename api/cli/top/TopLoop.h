#pragma once

#include "api/cli/top/TopState.h"

namespace hearth::cli {

/// Shows the server in the user's terminal until a key or a signal ends it. Returns the exit
/// status. Throws UsageError if TERM cannot show a screen, RemoteError if the server refuses the
/// caller.
int runTopLoop(const Options& options, TopState state, bool colours);

}  // namespace hearth::cli
