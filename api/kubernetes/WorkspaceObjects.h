#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "api/kubernetes/ObjectFollower.h"
#include "api/kubernetes/WorkspaceObject.h"
#include "base/Clock.h"
#include "base/Json.h"
#include "base/Mutex.h"
#include "base/task/Executor.h"
#include "controller/contract/Workspaces.h"
#include "metrics/Log.h"
#include "pool/runtime/kubernetes/client/ClusterConfig.h"

namespace hearth::kubernetes {

/// The Workspace objects of one namespace: each claims a workspace and has the result in its
/// status. A Secret beside it has the server's address and a token for that workspace alone. The
/// workspace ends with its object, even if no server ran when the object was deleted: it has the
/// object's uid as a label. An object whose workspace has ended stays, and claims no other.
///
/// Runs the follower's two threads and a few for the claims, which hold none while they wait.
class WorkspaceObjects {
public:
    /// `url`: the address at which clients reach this server. References must outlive it.
    WorkspaceObjects(pool::kubernetes::ClusterConfig cluster, controller::Workspaces& workspaces,
                     std::string secret_key, std::string url, const Clock& clock,
                     metrics::Log& log);
    ~WorkspaceObjects();
    WorkspaceObjects(const WorkspaceObjects&) = delete;
    WorkspaceObjects& operator=(const WorkspaceObjects&) = delete;

    /// Call when the earlier workspaces are known: an unknown workspace counts as ended.
    void begin() { follower_.begin(); }
    /// Cancels the claims that wait. Call before the workspaces end.
    void stop();

private:
    /// A running claim. Its task and its object share it.
    struct Claim {
        Mutex mutex;
        std::optional<controller::WorkspaceView> view HEARTH_GUARDED_BY(mutex);
        std::optional<Refusal> refusal HEARTH_GUARDED_BY(mutex);
        bool ended HEARTH_GUARDED_BY(mutex) = false;  ///< its earlier workspace is gone
    };
    /// State of one object; only the worker touches it.
    struct Followed {
        std::string uid;
        std::string workspace;  ///< empty: none yet
        std::string tenant;
        /// Set by this server's claim, or by the workspace's label; a status alone may be forged.
        bool certain = false;
        bool secret = false;  ///< the Secret exists
        std::shared_ptr<Claim> claim;
        std::shared_ptr<void> task;      ///< the claim's; destroying it cancels that
        std::optional<TimePoint> again;  ///< when to claim, or to make the Secret, once more
        std::chrono::seconds delay{};    ///< the pause before `again`; longer each time
        std::int64_t refused = 0;        ///< the generation that was wrong; 0: none
        Json status;                     ///< as last written, or found
        std::optional<TimePoint> wrote;
        std::string trouble;  ///< the last write's failure
    };

    bool sync(const std::string& name, const Json* object);
    void see(const Json& object, Followed& known);
    void claim(const Json& object, Followed& known);
    void beginClaim(const std::string& name, const WorkspaceWish& wish, Followed& known);
    /// The task of a claim.
    Task<> carry(std::string name, WorkspaceWish wish, std::shared_ptr<Claim> claim);
    /// Takes the result of a claim that has ended.
    void collect(const Json& object, Followed& known);
    void later(Followed& known) const;
    void follow(const Json& object, Followed& known);
    bool makeSecret(const Json& object, Followed& known);
    void publish(const Json& object, const Json& status, Followed& known);
    void endLeftovers();
    /// Ends the workspace of an object that is gone. False: not yet.
    bool end(const Followed& known);
    bool close(const std::string& tenant, const std::string& workspace);
    /// Drops a claim, which is cancelled if it still waits.
    void drop(Followed& known);

    controller::Workspaces& workspaces_;
    const std::string secret_key_;
    const std::string url_;
    const Clock& clock_;
    metrics::Log& log_;
    std::map<std::string, Followed> followed_;      ///< by name
    std::map<std::string, std::size_t> under_way_;  ///< running claims, by tenant
    std::size_t claims_ = 0;                        ///< all running claims
    std::optional<Executor> executor_;              ///< of the claims, until stop()
    ObjectFollower follower_;                       ///< last: its threads use all of the above
};

}  // namespace hearth::kubernetes
