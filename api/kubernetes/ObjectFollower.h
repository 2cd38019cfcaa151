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

/// Follows the objects of one kind of hearth.dev in one namespace, and writes their statuses and
/// events. Two threads, which end with it: one follows, one works.
class ObjectFollower {
public:
    /// Callbacks that the worker runs.
    struct Work {
        /// Syncs an object that is new or has changed, and each object once a second. Null: the
        /// object is gone, or is being deleted. Returns whether to look at this name again.
        std::function<bool(const std::string& name, const Json* object)> sync;
        /// Runs when the whole first list has been synced, and then every minute.
        std::function<void()> round;
    };

    /// `plural`: "sandboxpools". References and everything that `work` uses must outlive it. Throws
    /// Error(InvalidArgument) for a cluster that cannot be used.
    ObjectFollower(pool::kubernetes::ClusterConfig cluster, std::string plural, const Clock& clock,
                   metrics::Log& log, Work work);
    ~ObjectFollower();
    ObjectFollower(const ObjectFollower&) = delete;
    ObjectFollower& operator=(const ObjectFollower&) = delete;

    /// Starts both threads. Call once.
    void begin();
    /// Waits until all existing objects have been synced, or the kind is not defined and so has no
    /// objects. False: the stop came first.
    bool awaitRound(std::stop_token stop);
    /// Ends both threads. Statuses stay as they are.
    void stop();
    /// Makes the worker look at this object soon. Any thread.
    void lookAt(const std::string& name);
    /// Returns the uids of all objects in the cache.
    std::set<std::string> uids() const;

    /// Returns whether the status was written. Sets `trouble` to the failure, or clears it; logs a
    /// new failure.
    bool writeStatus(const Json& object, const Json& status, std::string& trouble);
    /// Writes events until one fails, which is only logged: the conditions are the truth.
    void tell(const std::vector<Json>& events);
    /// Creates any object in the namespace. Returns the failure; "" if the object exists now.
    std::string create(const pool::kubernetes::KubeResource& resource, const Json& object);
    /// Returns the API server's answer at a path; nullopt if it does not answer or refuses.
    std::optional<Json> read(const std::string& path);
    const std::string& ns() const { return resource_.ns; }

private:
    pool::kubernetes::ReflectorOptions following();
    void worker(const std::stop_token& stop);
    /// Returns changed objects, and once a second all, beginning with another one each time: so no
    /// object is always the last if not all can be served at once.
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
    std::map<std::string, std::string> failing_;  ///< worker only: the logged failures
    std::set<std::string> known_;                 ///< worker only: objects that exist
    std::optional<TimePoint> round_;              ///< the last round
    std::optional<TimePoint> swept_;              ///< the last look at all objects
    std::size_t sweeps_ = 0;

    Mutex mutex_;
    StoppableCondition wake_;
    std::set<std::string> changed_ HEARTH_GUARDED_BY(mutex_);
    bool listed_ HEARTH_GUARDED_BY(mutex_) = false;   ///< a list has come, unread
    bool settled_ HEARTH_GUARDED_BY(mutex_) = false;  ///< nothing is left to wait for
    std::shared_ptr<void> subscription_;
    std::jthread follower_;
    std::jthread worker_;
};

}  // namespace hearth::kubernetes
