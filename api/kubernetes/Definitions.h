#pragma once

#include <string>
#include <string_view>

#include "base/Json.h"

namespace hearth::kubernetes {

/// The CustomResourceDefinition of SandboxPool, with the fields that REST has, as Kubernetes from
/// 1.20 on takes it. Rules that such a schema cannot say are the server's: it refuses an object
/// with a condition.
Json sandboxPoolDefinition();
/// The same of Workspace.
Json workspaceDefinition();

inline constexpr const char* kObjectVersion = "v1alpha1";
inline constexpr std::string_view kMarkPrefix = "hearth-definition-";

/// The mark of a definition, "hearth-definition-0-1-0-4be2a06ac3f1": the version of the program and
/// a hash of all but descriptions. It is one of the definition's categories, for these stand in the
/// list of resources, which any account may read; a definition itself few may.
std::string definitionMark(const Json& definition);

}  // namespace hearth::kubernetes
