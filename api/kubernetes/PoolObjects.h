#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "api/kubernetes/DefinitionCheck.h"
#include "api/kubernetes/ObjectFollower.h"
#include "api/kubernetes/PoolObject.h"
#include "base/Clock.h"
#include "base/Json.h"
#include "controller/services/PoolService.h"
#include "metrics/Log.h"
#include "pool/runtime/kubernetes/client/ClusterConfig.h"

namespace hearth::kubernetes {

/// The SandboxPool objects of one namespace: each declares a pool and has the result in its status.
/// A deleted object takes its pool with it, even if no server was running then, because the pool
/// remembers the object's uid. So there is no finalizer: it would keep objects, their namespace and
/// their CRD from being deleted if no server is left.
///
/// While the cluster's definitions are older than this program's, each object has the condition
/// DefinitionOutdated, which names them; an Event reports it.
class PoolObjects {
public:
    /// References must outlive it. Throws Error(InvalidArgument) for a cluster that cannot be used.
    PoolObjects(pool::kubernetes::ClusterConfig cluster, controller::PoolService& pools,
                const Clock& clock, metrics::Log& log);

    /// Waits until the pools are declared, if there are any. False: the stop came first.
    bool begin(std::stop_token stop) {
        follower_.begin();
        return follower_.awaitRound(std::move(stop));
    }
    /// Call before the pools end.
    void stop() { follower_.stop(); }

private:
    /// State of one object; only the worker touches it.
    struct Followed {
        std::string uid;
        std::int64_t generation = 0;
        std::optional<Refusal> refusal;
        std::optional<TimePoint> again;  ///< when to declare it once more
        Json status;                     ///< as last written, or found
        std::optional<TimePoint> wrote;
        std::optional<TimePoint> told;  ///< the last event
        std::string trouble;            ///< the last write's failure, logged once
    };

    bool sync(const std::string& name, const Json* object);
    void declare(const Json& object, Followed& known);
    bool withdraw(const std::string& name);
    void withdrawLeftovers();
    std::optional<controller::PoolView> find(const std::string& name);
    void publish(const Json& object, Followed& known);
    void lookAtDefinitions();

    controller::PoolService& pools_;
    const Clock& clock_;
    metrics::Log& log_;
    DefinitionWatch definitions_;  ///< worker only
    std::map<std::string, Followed> followed_;
    bool all_declared_ = false;  ///< worker only: statuses are written from then on
    ObjectFollower follower_;    ///< last: its threads use all of the above
};

}  // namespace hearth::kubernetes
