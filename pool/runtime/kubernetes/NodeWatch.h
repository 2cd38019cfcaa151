#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/Clock.h"
#include "metrics/Log.h"
#include "pool/runtime/kubernetes/client/KubernetesClient.h"
#include "pool/runtime/kubernetes/client/ObjectCache.h"
#include "pool/runtime/kubernetes/client/Reflector.h"

namespace hearth::pool::kubernetes {

/// Follows the cluster's nodes and knows which take no more work: cordoned, not ready, or gone.
/// Without the right to watch nodes (they belong to no namespace), every node counts as fit.
/// Thread-safe; its thread ends with the object.
class NodeWatch {
public:
    /// References outlive it. Its thread calls `changed` with the name of a node whose fitness may
    /// have changed.
    NodeWatch(KubernetesClient& client, const Clock& clock, metrics::Log& log,
              std::function<void(const std::string& node)> changed);
    ~NodeWatch();
    NodeWatch(const NodeWatch&) = delete;
    NodeWatch& operator=(const NodeWatch&) = delete;

    /// Returns why no new client should get a sandbox there; empty: it is fit, or unknown. If no
    /// node is fit, none counts as unfit: only their warm sandboxes are left to serve clients.
    std::string unfit(const std::string& node) const;

private:
    ReflectorOptions following();
    void tell(const ObjectChange& change);

    metrics::Log& log_;
    const std::function<void(const std::string&)> changed_;
    ObjectCache cache_;
    Reflector reflector_;
    std::shared_ptr<void> subscription_;
    std::jthread follower_;
};

/// The same for one node, from its object alone.
std::string unfitness(const Json& node);

}  // namespace hearth::pool::kubernetes
