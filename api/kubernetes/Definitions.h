#pragma once

#include <string>
#include <string_view>

#include "base/Json.h"

namespace hearth::kubernetes {

/// Returns the CustomResourceDefinition of SandboxPool, with the fields of REST, in the form that
/// Kubernetes 1.20 and later accepts. The server checks the rules that such a schema cannot
/// express: it refuses an object with a condition.
Json sandboxPoolDefinition();
/// The same for Workspace.
Json workspaceDefinition();

inline constexpr const char* kObjectVersion = "v1alpha1";
inline constexpr std::string_view kMarkPrefix = "hearth-definition-";

/// Returns the mark of a definition, "hearth-definition-0-1-0-4be2a06ac3f1": the program's version
/// and a hash of everything except descriptions. It is one of the definition's categories, because
/// any account may read them in the list of resources; few accounts may read a definition itself.
std::string definitionMark(const Json& definition);

}  // namespace hearth::kubernetes
