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

/// Returns whether the request names packages, or wants the ones that its code imports.
bool wantsPackages(const ExecutionRequest& request);
/// Error(InvalidArgument) unless they are names and versions of an index, and automatic packages
/// are for Python code. `language`: the code's; empty: a command, or not known yet.
void checkPackages(const ExecutionRequest& request, const std::string& language);
/// The program to run first; `shut` is from shutWays(). Error(InvalidArgument) as above.
agent::PrepareWork packagesFirst(const ExecutionRequest& request, const std::string& language,
                                 const std::map<std::string, std::string>& shut);

/// Returns the outcome as the workspace reports it: untrusted text, bounded.
RunPackages readPackages(const agent::Prepared& prepared);
/// Returns why an execution that ended with `status` did not begin: {"name", "message",
/// "traceback"}; nullopt if it did begin.
std::optional<Json> packageError(const RunPackages& packages, ExecutionStatus status);

}  // namespace hearth::controller
