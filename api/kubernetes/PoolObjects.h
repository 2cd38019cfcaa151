#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "api/kubernetes/PoolObject.h"
#include "base/Clock.h"
#include "base/Json.h"
#include "base/Mutex.h"
#include "controller/services/PoolService.h"
#include "metrics/Log.h"
#include "pool/runtime/kubernetes/client/ClusterConfig.h"
#include "pool/runtime/kubernetes/client/KubernetesClient.h"
#include "pool/runtime/kubernetes/client/ObjectCache.h"
#include "pool/runtime/kubernetes/client/Reflector.h"

namespace hearth::kubernetes {

/// The SandboxPool objects of one namespace: each declares a pool, and has in its status what
/// became of it. An object that goes takes its pool with it, also one that went while no server
/// looked: the pool remembers the object's uid. There is no finalizer for that reason: it would
/// keep objects, their namespace and their CRD from going where no server is left.
///
/// Two threads, which end with it: one follows the objects, one declares pools and writes statuses.
class PoolObjects {
public:
    /// References outlive it. Throws Error(InvalidArgument) for a cluster that cannot be used.
    PoolObjects(pool::kubernetes::ClusterConfig cluster, controller::PoolService& pools,
                const Clock& clock, metrics::Log& log);
    ~PoolObjects();
    PoolObjects(const PoolObjects&) = delete;
    PoolObjects& operator=(const PoolObjects&) = delete;

    /// Begins to follow, and waits until the pools are declared, or `most` is over, or there is
    /// nothing to wait for: then they are declared when the cluster answers. Call once.
    void begin(std::chrono::milliseconds most);
    /// Ends both threads; statuses stay as they are. Before the pools end.
    void stop();

private:
    /// What is known of one object. Of the worker.
    struct Followed {
        std::string uid;
        std::int64_t generation = 0;
        std::optional<Refusal> refusal;
        std::optional<TimePoint> again;  ///< when to declare it once more
        Json status;                     ///< as last written, or found
        std::optional<TimePoint> wrote;
        std::optional<TimePoint> told;  ///< the last event
        std::string trouble;            ///< with the last write, logged once
    };

    pool::kubernetes::ReflectorOptions following();
    void work(const std::stop_token& stop);
    /// What has changed, and once a second everything.
    std::set<std::string> nextNames(const std::stop_token& stop);
    void sync(const std::string& name);
    void declare(const Json& object, Followed& known);
    void withdraw(const std::string& name);
    void withdrawLeftovers();
    std::optional<controller::PoolView> find(const std::string& name);
    void publish(const Json& object, Followed& known);
    void tell(const Json& object, const Json& status, Followed& known);

    controller::PoolService& pools_;
    const Clock& clock_;
    metrics::Log& log_;
    pool::kubernetes::ClusterAccess access_;
    pool::kubernetes::KubernetesClient client_;
    const pool::kubernetes::KubeResource resource_;
    pool::kubernetes::ObjectCache cache_;
    pool::kubernetes::Reflector reflector_;
    std::atomic<bool> stopped_{false};
    std::map<std::string, Followed> followed_;

    Mutex mutex_;
    StoppableCondition wake_;
    std::set<std::string> changed_ HEARTH_GUARDED_BY(mutex_);
    bool listed_ HEARTH_GUARDED_BY(mutex_) = false;   ///< the first list has come, unread
    bool settled_ HEARTH_GUARDED_BY(mutex_) = false;  ///< nothing to wait for any more
    std::shared_ptr<void> subscription_;
    std::jthread follower_;
    std::jthread worker_;
};

}  // namespace hearth::kubernetes
