#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/Clock.h"
#include "base/Mutex.h"
#include "metrics/Log.h"
#include "pool/agent/secure/Keys.h"
#include "pool/image/LayerStore.h"
#include "pool/runtime/ContainerRuntime.h"
#include "pool/runtime/kubernetes/NodeWatch.h"
#include "pool/runtime/kubernetes/PodView.h"
#include "pool/runtime/kubernetes/client/KubernetesClient.h"
#include "pool/runtime/kubernetes/client/ObjectCache.h"
#include "pool/runtime/kubernetes/client/Reflector.h"

namespace hearth::pool {

/// The settings of a server in a cluster.
struct KubernetesOptions {
    std::string instance;     ///< the label of this server's Pods
    std::string agent_image;  ///< its agent folder is /hearth
    /// The object whose deletion also deletes its Pods, as parseOwner() reads it; empty: none.
    std::string owner = {};
    /// The mount point of a volume that Pods also mount, and its claim: layers are in its folder
    /// `layers`. Empty: sandboxes have no layers.
    std::string volume = {};
    std::string volume_claim = {};
    /// False while another replica may lead: then nothing is made or destroyed. Any thread.
    std::function<bool()> may_write = [] { return true; };
};

/// The kubernetes runtime: each sandbox is a Pod. The API server is only called for writes: a watch
/// reports all Pods with their agents' addresses and keys. Connections to agents are TCP to the
/// Pod, sealed (agent::secure). Thread-safe.
class KubernetesRuntime final : public ContainerRuntime {
public:
    /// Waits until the Pods of the instance are known; throws Error(Unavailable) with the reason if
    /// that is impossible. `key`: the server's, unchanged by restarts.
    KubernetesRuntime(KubernetesOptions options, std::unique_ptr<kubernetes::ClusterAccess> access,
                      agent::secure::ServerKey key, const Clock& clock, metrics::Log& log);
    ~KubernetesRuntime() override;

    Started create(const SandboxId& id, const SandboxSpec& spec) override;
    void destroy(const SandboxId& id) override;
    std::vector<SandboxInfo> list() override;
    std::optional<SandboxInfo> find(const SandboxId& id) override;
    void onNews(const std::function<void(const SandboxId&)>& news) override;
    agent::AgentDialer dialer(const SandboxId& id) override;
    /// The server cannot see the node: the agents report their usage.
    std::optional<SandboxUsage> usage(const SandboxId& /*id*/) override { return std::nullopt; }
    std::optional<LimitInUse> narrow(const SandboxId& id, const SandboxLimits& limits) override;
    std::vector<Leftover> sweep(const std::vector<SandboxId>& keep) override;
    /// Returns the reference itself, because the kubelet pulls.
    std::string resolveImage(const std::string& name) override { return name; }
    /// Sets a label of the Pod.
    void noteClaim(const SandboxId& id) override;
    std::vector<std::string> layers() override;
    void addLayer(const std::string& digest, int tar) override;
    void removeLayer(const std::string& digest) override;
    bool inCluster() const override { return true; }
    std::string ownClaim() const override { return options_.volume_claim; }
    RuntimeFacts facts() override;
    void finishWithin(std::chrono::milliseconds most) override;

private:
    kubernetes::ReflectorOptions following();
    void heard(const kubernetes::ReflectorCondition& condition);
    void awaitFirstList();
    /// Reads the owner of Pods; null if the options name none.
    Json findOwner();
    /// Creates the folder of layers.
    void prepareVolume();
    std::string keyOf(const SandboxId& id) const;
    void changed(const kubernetes::ObjectChange& change);
    void requireLead() const;
    /// Reports news about every sandbox of a node.
    void nodeChanged(const std::string& node);
    SandboxInfo infoOf(kubernetes::PodView view) const;
    agent::AgentLink dial(const SandboxId& id, agent::secure::Purpose purpose) const;
    std::optional<kubernetes::PodView> view(const SandboxId& id) const;
    kubernetes::CallLimits limits() const;
    kubernetes::KubeResult<Json> createPod(const Json& pod);
    /// The path of its layer in the volume; empty: none.
    std::string layerOf(const SandboxSpec& spec);

    const KubernetesOptions options_;
    const std::unique_ptr<kubernetes::ClusterAccess> access_;
    const agent::secure::ServerKey key_;
    const Clock& clock_;
    metrics::Log& log_;
    const image::LayerStore layers_;
    const kubernetes::KubeResource pods_;
    kubernetes::KubernetesClient client_;
    kubernetes::ObjectCache cache_;
    kubernetes::Reflector reflector_;
    std::atomic<bool> stopped_{false};
    std::atomic<TimePoint> last_call_{TimePoint::max()};  ///< all calls end by this time
    std::string version_;                                 ///< of the API server
    Json owner_;                                          ///< an ownerReferences entry, or null

    mutable Mutex mutex_;
    std::function<void(const SandboxId&)> news_ HEARTH_GUARDED_BY(mutex_);
    /// Sandboxes made since this runtime began; with the time until the watch has shown them.
    std::map<SandboxId, std::optional<TimePoint>> made_ HEARTH_GUARDED_BY(mutex_);
    /// Destroyed sandboxes, with the time, until the watch reports it.
    std::map<SandboxId, TimePoint> ended_ HEARTH_GUARDED_BY(mutex_);
    bool followed_ HEARTH_GUARDED_BY(mutex_) = false;
    Condition following_;
    std::shared_ptr<void> subscription_;
    std::jthread follower_;
    std::unique_ptr<kubernetes::NodeWatch> nodes_;
};

}  // namespace hearth::pool
