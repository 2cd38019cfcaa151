#pragma once

#include <map>
#include <set>
#include <string>

#include "api/cli/doctor/Finding.h"
#include "api/config/ServeConfig.h"
#include "base/Json.h"

namespace hearth::cli {

/// Checks the cluster for the kubernetes runtime: it answers, it grants the server's permissions,
/// and it would accept a sandbox's Pod. Makes nothing.
Findings checkKubernetes(const ServeConfig& config);

/// Judges the API server's answer at /version.
Finding judgeClusterVersion(const Json& version);
/// `wanted`: pools by the runtime class that they name; `there`: the cluster's classes.
Finding judgeRuntimeClasses(const std::map<std::string, std::string>& wanted,
                            const std::set<std::string>& there);

}  // namespace hearth::cli
