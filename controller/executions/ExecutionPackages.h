#pragma once

#include <map>
#include <optional>
#include <string>

#include "controller/contract/Executions.h"
#include "controller/packages/PackageSpec.h"
#include "pool/agent/connection/AgentTypes.h"

namespace hearth::controller {

// The packages of an execution: missing ones are installed in its workspace before it runs, as part
// of it (same deadline, kill and id), by the workspace's package program.

/// Whether the request asks for any, or for whatever its code imports.
bool wantsPackages(const ExecutionRequest& request);
/// Error(InvalidArgument) unless they are names and versions of an index, and automatic ones go
/// with Python code. `language` is that of the code; empty: a command, or not known yet.
void checkPackages(const ExecutionRequest& request, const std::string& language);
/// The program to run first; `shut` is from shutWays(). Error(InvalidArgument) as above.
agent::PrepareWork packagesFirst(const ExecutionRequest& request, const std::string& language,
                                 const std::map<std::string, std::string>& shut);

/// The outcome as the workspace reports it: untrusted text, bounded.
RunPackages readPackages(const agent::Prepared& prepared);
/// Why an execution that ended with `status` has not begun: {"name", "message", "traceback"};
/// nullopt if it has.
std::optional<Json> packageError(const RunPackages& packages, ExecutionStatus status);

}  // namespace hearth::controller
