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
    std::string identity;    ///< unique to this process
    std::string owner = {};  ///< the owner of the Lease (parseOwner); empty: none
    std::string address;     ///< HOST:PORT where this replica serves clients when it leads
    std::chrono::seconds duration{15};   ///< after this long without a renewal, others may take it
    std::chrono::seconds fresh_for{10};  ///< after a renewal; shorter than `duration`
    std::chrono::milliseconds every{2'000};
};

/// The holder of the Lease, as this replica last saw it.
struct LeaseHolder {
    std::string identity;  ///< empty: none, or unknown
    std::string address;
    std::uint64_t epoch = 0;

    bool operator==(const LeaseHolder&) const = default;
};

/// Decides which of several replicas leads, by a Lease (coordination.k8s.io/v1). Its epoch exceeds
/// every earlier leader's: agents refuse a server with a lower one, so a replaced leader that does
/// not know it yet does no harm. Only this machine's clock decides about expiry, from the first
/// sight of a change. Rules as in client-go's leaderelection; the epoch is Hearth's addition.
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

    /// Checks the Lease once, and takes or renews it if allowed. Deposed is final.
    Standing step();
    /// The wait before the next step(): `every`, or less if another's Lease expires earlier, or
    /// this one stops being fresh.
    std::chrono::milliseconds pause() const;
    /// Steps until this replica leads, or until a stop: then false. `changed` is called with each
    /// new holder that is another replica.
    bool awaitTurn(const std::stop_token& stop,
                   const std::function<void(const LeaseHolder&)>& changed);
    /// Renews in its own thread, which calls `deposed` once with the reason.
    void keep(std::function<void(const std::string& why)> deposed);
    /// Ends cleanly, so another replica need not wait for the expiry. Ends keep().
    void release();

    LeaseHolder holder() const;
    /// The epoch of this replica's term; 0 before.
    std::uint64_t epoch() const { return epoch_; }
    /// True if it is certain that no other replica leads.
    bool fresh() const;
    /// The thread of step() calls `changed` after each change of fresh(); it must not block. Ends
    /// with the returned object.
    std::shared_ptr<void> subscribe(std::function<void()> changed);

private:
    Standing follow();
    Standing renew();
    void tellIfChanged();
    /// Returns the object with this replica as holder; `before` may be null: there is none yet.
    Json claimed(const Json& before) const;
    Json renewed(Json record) const;
    Standing take(const Json& before);
    Standing lead(Json record, TimePoint asked);
    Standing depose(const std::string& why);
    void observe(const Json& record);
    /// The time when others may take it, from its observed changes.
    TimePoint expiry(const Json& record) const;
    void wait(const std::stop_token& stop);

    const LeaseOptions options_;
    const Clock& clock_;
    metrics::Log& log_;
    KubernetesClient client_;
    std::atomic<bool> stopped_{false};
    std::atomic<std::uint64_t> epoch_{0};

    // Used by the thread of step():
    Standing standing_ = Standing::Follower;
    Json record_;             ///< as last written by this replica
    std::string version_;     ///< the last observed resourceVersion
    TimePoint observed_{};    ///< the time when it was first seen
    TimePoint expires_{};     ///< of another's Lease; the clock's start if none is known
    bool was_fresh_ = false;  ///< as last reported to subscribers
    std::string why_;         ///< the reason why it was deposed
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
