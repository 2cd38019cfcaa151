#pragma once

#include <string>

#include "pool/runtime/kubernetes/client/KubernetesClient.h"

namespace hearth::pool::kubernetes {

/// All Pods of one server.
struct PodGroup {
    std::string ns;
    std::string instance;
    Json owner;  ///< an ownerReferences entry; null: none
};

/// Shuts the instance's Pods off, before any of them is made: nothing goes out, and only the
/// agents' port is open, where who comes must prove to be the server. Whether the cluster's network
/// enforces policies cannot be asked. Throws Error(Unavailable) with what to do.
void shutPodsOff(KubernetesClient& client, const PodGroup& pods, const CallLimits& limits);

}  // namespace hearth::pool::kubernetes
