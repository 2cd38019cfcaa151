#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/Clock.h"
#include "base/Json.h"
#include "base/Mutex.h"
#include "metrics/Log.h"
#include "pool/runtime/kubernetes/client/ClusterConfig.h"
#include "pool/runtime/kubernetes/client/KubernetesClient.h"
#include "pool/runtime/kubernetes/client/ObjectCache.h"
#include "pool/runtime/kubernetes/client/Reflector.h"

namespace hearth::kubernetes {

/// Follows the objects of one kind of hearth.dev in one namespace, and writes what they are told:
/// statuses and events. Two threads, which end with it: one follows, one works.
class ObjectFollower {
public:
    /// Callbacks of the worker.
    struct Work {
        /// An object that is new, has changed, or is looked at again, as each is once a second.
        /// Null: it has gone, or is going. Returns whether to look at this name again.
        std::function<bool(const std::string& name, const Json* object)> sync;
        /// Once all of the first list have been synced, and then each minute.
        std::function<void()> round;
    };

    /// `plural`: "sandboxpools". References outlive it, and what `work` uses too. Throws
    /// Error(InvalidArgument) for a cluster that cannot be used.
    ObjectFollower(pool::kubernetes::ClusterConfig cluster, std::string plural, const Clock& clock,
                   metrics::Log& log, Work work);
    ~ObjectFollower();
    ObjectFollower(const ObjectFollower&) = delete;
    ObjectFollower& operator=(const ObjectFollower&) = delete;

    /// Call once.
    void begin();
    /// Waits until all that there is has been synced, or the kind is not defined: then there is
    /// nothing. False: the stop came first.
    bool awaitRound(std::stop_token stop);
    /// Ends both threads. Statuses stay as they are.
    void stop();
    /// Has the worker look at this object soon. Any thread.
    void lookAt(const std::string& name);
    /// The uids of all objects in the cache.
    std::set<std::string> uids() const;

    /// Returns whether the status was written. Sets `trouble` to the failure, or clears it; a
    /// failure that is new is logged.
    bool writeStatus(const Json& object, const Json& status, std::string& trouble);
    /// Events are a help, and the conditions are the truth: one that fails is left out.
    void tell(const std::vector<Json>& events);
    /// Of anything in the namespace. The failure as a text; "" where it is there now.
    std::string create(const pool::kubernetes::KubeResource& resource, const Json& object);
    /// The answer of the API server at a path; nullopt where it does not answer or refuses.
    std::optional<Json> read(const std::string& path);
    const std::string& ns() const { return resource_.ns; }

private:
    pool::kubernetes::ReflectorOptions following();
    void worker(const std::stop_token& stop);
    /// What has changed, and once a second everything, each time from another one on: where not all
    /// can be served at once, nobody is always the last.
    std::vector<std::string> nextNames(const std::stop_token& stop);
    void sync(const std::string& name);
    void guarded(const std::string& name, const std::function<void()>& act);
    void settle();

    const Clock& clock_;
    metrics::Log& log_;
    const Work work_;
    pool::kubernetes::ClusterAccess access_;
    pool::kubernetes::KubernetesClient client_;
    const pool::kubernetes::KubeResource resource_;
    pool::kubernetes::ObjectCache cache_;
    pool::kubernetes::Reflector reflector_;
    std::atomic<bool> stopped_{false};
    std::map<std::string, std::string> failing_;  ///< of the worker: what was logged
    std::set<std::string> known_;                 ///< of the worker: objects that are there
    std::optional<TimePoint> round_;              ///< the last one
    std::optional<TimePoint> swept_;              ///< when everything was looked at
    std::size_t sweeps_ = 0;

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
