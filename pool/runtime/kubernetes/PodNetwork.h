#pragma once

#include <string>

#include "pool/runtime/kubernetes/client/KubernetesClient.h"

namespace hearth::pool::kubernetes {

/// All Pods of one server.
struct PodGroup {
    std::string ns;
    std::string instance;
    Json owner;    ///< an ownerReferences entry; null: none
    Json servers;  ///< selects the servers' Pods in this namespace; null: they are no Pods of it
};

/// Isolates the instance's Pods, before any of them is made: no outgoing traffic, and only the
/// agents' port is open, to the servers' Pods if they are known; each client must also prove to be
/// the server. The API does not show whether the cluster's network enforces policies. Throws
/// Error(Unavailable) with a hint.
void shutPodsOff(KubernetesClient& client, const PodGroup& pods, const CallLimits& limits);

}  // namespace hearth::pool::kubernetes
