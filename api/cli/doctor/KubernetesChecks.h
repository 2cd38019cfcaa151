#pragma once

#include <map>
#include <set>
#include <string>

#include "api/cli/doctor/Finding.h"
#include "api/config/ServeConfig.h"
#include "base/Json.h"

namespace hearth::cli {

/// Checks what the kubernetes runtime needs of its cluster: that it answers, what the server may do
/// there, and whether it would take a sandbox's Pod. Makes nothing.
Findings checkKubernetes(const ServeConfig& config);

/// Judges what an API server answers at /version.
Finding judgeClusterVersion(const Json& version);
/// `wanted`: pools by the runtime class that they name; `there`: those of the cluster.
Finding judgeRuntimeClasses(const std::map<std::string, std::string>& wanted,
                            const std::set<std::string>& there);

}  // namespace hearth::cli
