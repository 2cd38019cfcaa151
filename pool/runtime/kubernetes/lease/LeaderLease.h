#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "base/Clock.h"
#include "base/Json.h"
#include "base/Mutex.h"
#include "base/Subscribers.h"
#include "metrics/Log.h"
#include "pool/runtime/kubernetes/client/KubernetesClient.h"

namespace hearth::pool::kubernetes {

struct LeaseOptions {
    std::string name;
    std::string ns;
    std::string identity;    ///< of this process, and of no other one
    std::string owner = {};  ///< with whose end the Lease goes (parseOwner); empty: none
    std::string address;     ///< HOST:PORT where this replica serves clients once it leads
    std::chrono::seconds duration{15};   ///< without a renewal for so long, others may take it
    std::chrono::seconds fresh_for{10};  ///< after a renewal; shorter than `duration`
    std::chrono::milliseconds every{2'000};
};

/// Who holds the Lease, as this replica last saw it.
struct LeaseHolder {
    std::string identity;  ///< empty: nobody, or not known
    std::string address;
    std::uint64_t epoch = 0;

    bool operator==(const LeaseHolder&) const = default;
};

/// Which of several replicas leads, by a Lease (coordination.k8s.io/v1). Its epoch is higher than
/// that of every leader before: agents refuse whoever comes with a lower one, so a leader that does
/// not know yet that it was replaced harms nothing. Expiry is judged by this machine's clock alone,
/// from when a change was seen here. Rules after client-go's leaderelection; the number is ours.
///
/// A leader that cannot renew, because the API server is away, stays the leader until it sees
/// another: claims need no API server. It is not `fresh()` then, and must destroy nothing.
///
/// One thread calls step(), pause() and awaitTurn(), before keep(); the rest is thread-safe.
class LeaderLease {
public:
    enum class Standing : std::uint8_t { Follower, Leader, Deposed };

    /// References outlive it.
    LeaderLease(ClusterAccess& access, LeaseOptions options, const Clock& clock, metrics::Log& log);
    ~LeaderLease();
    LeaderLease(const LeaderLease&) = delete;
    LeaderLease& operator=(const LeaderLease&) = delete;

    /// Looks once, and takes or renews the Lease if it may. Deposed is final.
    Standing step();
    /// How long to wait for the next step(): `every`, or less where another's Lease expires before,
    /// or our own is no longer fresh.
    std::chrono::milliseconds pause() const;
    /// Steps until this replica leads, or a stop: then false. `changed` is called with each new
    /// holder that is another replica.
    bool awaitTurn(const std::stop_token& stop,
                   const std::function<void(const LeaseHolder&)>& changed);
    /// Renews in a thread of its own; `deposed` is called there, once, with the reason.
    void keep(std::function<void(const std::string& why)> deposed);
    /// A clean end: another replica need not wait for the expiry. Ends keep().
    void release();

    LeaseHolder holder() const;
    /// Of our own term; 0 before.
    std::uint64_t epoch() const { return epoch_; }
    /// Whether it is certain that no other replica leads.
    bool fresh() const;
    /// `changed` is called by the thread of step(), which it must not hold up, each time fresh()
    /// has become another. Ends with the returned object.
    std::shared_ptr<void> subscribe(std::function<void()> changed);

private:
    Standing follow();
    Standing renew();
    void tellIfChanged();
    /// Puts us into the object, which may be null: there is none yet.
    Json claimed(const Json& before) const;
    Json renewed(Json record) const;
    Standing take(const Json& before);
    Standing lead(Json record, TimePoint asked);
    Standing depose(const std::string& why);
    void observe(const Json& record);
    /// When others may take it, from what was observed of it.
    TimePoint expiry(const Json& record) const;
    void wait(const std::stop_token& stop);

    const LeaseOptions options_;
    const Clock& clock_;
    metrics::Log& log_;
    KubernetesClient client_;
    std::atomic<bool> stopped_{false};
    std::atomic<std::uint64_t> epoch_{0};

    // Of the thread of step().
    Standing standing_ = Standing::Follower;
    Json record_;             ///< as we last wrote it
    std::string version_;     ///< resourceVersion that was observed last
    TimePoint observed_{};    ///< and when that was first seen
    TimePoint expires_{};     ///< another's Lease; the start of time where none is known
    bool was_fresh_ = false;  ///< as subscribers know it
    std::string why_;         ///< it was deposed
    std::string trouble_;     ///< the last failure, logged once

    Subscribers subscribers_;
    mutable Mutex mutex_;
    StoppableCondition wake_;
    LeaseHolder holder_ HEARTH_GUARDED_BY(mutex_);
    std::optional<TimePoint> renewed_ HEARTH_GUARDED_BY(mutex_);
    std::jthread keeper_;
};

/// A time as Kubernetes' MicroTime: "2026-11-26T08:00:00.123456Z".
std::string microTime(WallTime time);

}  // namespace hearth::pool::kubernetes
