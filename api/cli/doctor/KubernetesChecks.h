#pragma once

#include "api/cli/doctor/Finding.h"
#include "api/config/ServeConfig.h"
#include "pool/runtime/kubernetes/client/KubernetesClient.h"

namespace hearth::cli {

/// Checks what the kubernetes runtime needs of its cluster: that it answers, what the server may do
/// there, and whether it would take a sandbox's Pod. Makes nothing.
Findings checkKubernetes(const ServeConfig& config);

/// The same of a cluster and a namespace. `replicas`: they elect a leader.
Findings judgeCluster(pool::kubernetes::KubernetesClient& client, const std::string& ns,
                      bool replicas);

}  // namespace hearth::cli
