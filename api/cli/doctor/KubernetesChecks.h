#pragma once

#include "api/cli/doctor/Finding.h"
#include "api/config/ServeConfig.h"

namespace hearth::cli {

/// Checks what the kubernetes runtime needs of its cluster: that it answers, what the server may do
/// there, and whether it would take a sandbox's Pod. Makes nothing.
Findings checkKubernetes(const ServeConfig& config);

}  // namespace hearth::cli
