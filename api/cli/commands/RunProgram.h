#pragma once

#include "api/cli/remote/Remote.h"
#include "api/cli/remote/RunRequest.h"
#include "api/command/Command.h"

namespace hearth::cli {

/// Sends the files and makes the context that the request needs, then starts it: detached, on a
/// terminal, or followed to its end with --stdin, --out and --save-results. Returns the status.
int runProgramOf(const Invocation& call, Remote& remote, RunRequest request);
/// Runs it on the user's terminal, which must be one; `request` gets the terminal's size. Returns
/// the program's status.
int runOnTerminal(const Invocation& call, Remote& remote, RunRequest request);

}  // namespace hearth::cli
