#pragma once

#include <chrono>

#include "api/rest/schema/Schema.h"
#include "controller/contract/Contexts.h"
#include "controller/contract/Executions.h"
#include "controller/contract/Workspaces.h"
#include "controller/services/PackageService.h"

namespace hearth::rest {

// The shapes of the requests, and the readers that turn a document of the right shape into a
// request of the services. The readers expect a validated document; they check themselves what a
// shape cannot express (a file's bytes) and throw Error(InvalidArgument).

Schema envSchema(const std::string& description);
Schema labelsSchema();

/// Fields of POST /v1/workspaces.
Schema workspaceRequestSchema();
/// Fields of POST /v1/workspaces:batch: the same with `count`, for several workspaces at once;
/// workspacePatchSchema() has the fields of PATCH /v1/workspaces/{workspace}.
Schema workspacesRequestSchema();
Schema workspacePatchSchema();
/// Fields of POST /v1/workspaces/{workspace}/executions.
Schema executionRequestSchema();
/// Fields of POST /v1/executions: those of an execution and of a workspace; `env` is the
/// execution's.
Schema oneShotRequestSchema();

/// Fields of POST /v1/workspaces/{workspace}/contexts.
Schema contextRequestSchema();
Schema packagesRequestSchema();

controller::ContextRequest readContextRequest(const Json& body);
controller::WorkspaceRequest readWorkspaceRequest(const Json& body);
controller::PackagesRequest readPackagesRequest(const Json& body);
controller::WorkspacePatch readWorkspacePatch(const Json& body);
controller::ExecutionRequest readExecutionRequest(const Json& body);
/// The workspace part of a one shot's body.
controller::WorkspaceRequest readOneShotWorkspace(const Json& body);

/// A duration from a validated number of seconds, which may have a fraction.
std::chrono::milliseconds secondsOf(const Json& value);

}  // namespace hearth::rest
