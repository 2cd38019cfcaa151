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
/// Without the right to watch nodes (they belong to no namespace) every node counts as fit.
/// Thread-safe; its thread ends with it.
class NodeWatch {
public:
    /// References outlive it. `changed` is called by its thread with the name of a node whose
    /// fitness may have changed.
    NodeWatch(KubernetesClient& client, const Clock& clock, metrics::Log& log,
              std::function<void(const std::string& node)> changed);
    ~NodeWatch();
    NodeWatch(const NodeWatch&) = delete;
    NodeWatch& operator=(const NodeWatch&) = delete;

    /// Why nobody new should get a sandbox there, in words; empty: it is fit, or nothing is known.
    /// Where no node is fit none is unfit: what is warm there is all that is left to serve from.
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

/// The same of one node, from its object alone.
std::string unfitness(const Json& node);

}  // namespace hearth::pool::kubernetes
