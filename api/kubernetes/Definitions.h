#pragma once

#include "base/Json.h"

namespace hearth::kubernetes {

/// The CustomResourceDefinition of SandboxPool, with the fields that REST has, as Kubernetes from
/// 1.20 on takes it. Rules that such a schema cannot say are the server's: it refuses an object
/// with a condition.
Json sandboxPoolDefinition();
/// The same of Workspace.
Json workspaceDefinition();

}  // namespace hearth::kubernetes
