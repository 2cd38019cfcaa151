#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/Clock.h"
#include "base/Mutex.h"
#include "controller/contract/Workspaces.h"
#include "controller/egress/credentials/Keyring.h"
#include "controller/egress/policy/NetworkPolicy.h"
#include "controller/workspaces/ContextSet.h"
#include "controller/workspaces/PauseGate.h"
#include "metrics/EndReason.h"
#include "pool/agent/client/AgentClient.h"
#include "pool/spec/SandboxSpec.h"

namespace hearth::controller {

/// The facts of a workspace that never change after its bind; its agent returns them after a
/// restart. Of the network only the sealed part is trusted.
struct WorkspaceFacts {
    std::string id;
    std::string tenant;
    std::string pool;
    pool::SandboxId sandbox;
    std::string claim_id;
    std::string fingerprint;
    std::string name;
    pool::SandboxLimits limits;
    std::vector<std::string> gpus = {};  ///< uuids of its devices, as the sandbox has them
    WallTime created{};
    TimePoint created_at{};
    std::chrono::milliseconds max_lifetime{0};  ///< of the pool: deadlines may not pass it; 0: none
    bool one_shot = false;
    bool count_running_work = true;            ///< of the pool (PoolSpec)
    std::chrono::milliseconds warn_before{0};  ///< of the pool
    bool pause_when_idle = false;              ///< of the pool, where the agent leaves that to us
    broker::NetworkMode network = broker::NetworkMode::None;
    /// Each list must allow a destination: the pool's, and the claim's if it brought one.
    std::vector<std::vector<std::string>> allow;
    /// Credentials of its requests to the outside; null: none.
    std::shared_ptr<const broker::Keyring> keyring = {};
    std::string sealed = {};  ///< of network, allow and keyring, by broker::ClaimSeal
    TraceContext trace = {};  ///< the claim, as a span
    /// Processor time of its sandbox before the claim; none: found after a restart.
    std::optional<std::uint64_t> cpu_before_ns = {};
};

/// The work in a sandbox while its connection is gone.
class Detached {
public:
    virtual ~Detached() = default;
    /// Its agent answers again, on this connection.
    virtual void rejoin(const std::shared_ptr<agent::AgentClient>& agent) = 0;
    /// Its workspace has ended; as lost, or otherwise.
    virtual void giveUp(bool lost) = 0;
};

/// A workspace is not idle while one of these lasts.
enum class Activity : std::uint8_t { Execution, Transfer };

/// The end of a workspace that comes by itself, if nothing happens before.
struct NearEnd {
    EndReason reason;
    TimePoint at;
};

/// The network of the workspace.
broker::NetworkPolicy networkPolicy(const WorkspaceFacts& facts);

/// One active workspace. The sandbox's agent holds the truth; this is the server's copy of it, in
/// memory. Thread-safe.
class Workspace {
public:
    Workspace(WorkspaceFacts facts, std::shared_ptr<agent::AgentClient> agent,
              std::map<std::string, std::string> labels, const agent::Deadlines& deadlines,
              TimePoint last_active);

    const WorkspaceFacts& facts() const { return facts_; }
    /// Another one after reconnected().
    std::shared_ptr<agent::AgentClient> agent() const;

    /// Its agent does not answer; false if that was known, or the end has begun.
    bool fallSilent(TimePoint now);
    /// Since when; nullopt while it answers.
    std::optional<TimePoint> silentSince() const;
    /// When the agent last answered after a silence; zero: there was none.
    TimePoint answeredAt() const;
    /// The agent answers again, on its connection or on this new one. Detached work continues with
    /// it.
    void answers(TimePoint now, std::shared_ptr<agent::AgentClient> agent = {});
    /// To hear of the next connection, or of the end; not kept. False if the end has begun.
    bool detach(const std::shared_ptr<Detached>& what);
    /// Once the end has begun: informs detached work.
    void giveUpDetached();
    /// It has ended with its sandbox: as lost, or as out of memory.
    bool endedLost() const;
    /// Whether its sandbox's processes run; of one that never pauses it is only held and let go.
    PauseGate& gate() { return gate_; }
    bool paused() const { return gate_.paused(); }
    ContextSet& contexts() { return contexts_; }
    const ContextSet& contexts() const { return contexts_; }

    /// Counts as activity. False once the end has begun.
    bool touch(TimePoint now);
    /// Work begins: the workspace is not idle until workEnded(), unless it is an execution and the
    /// pool does not count running ones. False once the end has begun.
    bool workBegan(Activity what, TimePoint now);
    void workEnded(Activity what, TimePoint now);
    /// A client waits for an execution or follows it, until left().
    void attended(TimePoint now);
    void left(TimePoint now);
    /// An execution has ended, and its result is not on disk yet: the workspace does not end for
    /// idleness until resultKept().
    void resultPending();
    void resultKept();
    /// Waits until all results are on disk; false where that takes longer.
    bool awaitResults(std::chrono::milliseconds timeout);
    /// Files were written by other means.
    void wrote(TimePoint now);
    /// When somebody last stopped writing to its files; now while anybody may still.
    TimePoint lastWrite(TimePoint now) const;
    /// Work in progress in it: executions and transfers.
    unsigned running() const;
    /// Records what the agent has acknowledged.
    void deadlines(TimePoint expires_at, std::chrono::milliseconds idle_timeout);
    /// All of it or nothing: throws Error(InvalidArgument) for more labels than there may be.
    void relabel(const std::map<std::string, std::optional<std::string>>& changes);

    /// Why it must end now, or be paused if that is what idleness means to it; nullopt if neither.
    std::optional<EndReason> due(TimePoint now) const;
    /// The end of which its owner is to be warned now, once for each: it is nearer than the pool's
    /// warnBefore, or than half of the time it had.
    std::optional<NearEnd> warning(TimePoint now);
    /// When due() may next say something else; TimePoint::max() for never.
    TimePoint nextDue() const;
    /// Begins the end; true for the first caller. With `only_if_due`, only if it is still due: an
    /// accepted activity and a reclaim never both win.
    bool beginEnd(EndReason reason, std::optional<TimePoint> only_if_due = {});
    bool active() const;

    /// The kernel has killed for memory: true if `total` is more than was known before.
    bool sawOom(std::uint64_t total);
    /// Its sandbox was lost when the kernel had killed `total` times: if that is more than was
    /// known, the kernel's kills are what it was lost to. Before its end, so that what ran in it
    /// can tell when the sandbox and its count have gone.
    void lostWith(std::uint64_t total);
    /// The same where the runtime knows the reason and no count.
    void ranOutOfMemory();
    bool lostToMemory() const;
    WorkspaceView view() const;

private:
    /// The count that this kind of work is in.
    unsigned& countOf(Activity what) HEARTH_REQUIRES(mutex_) {
        return what == Activity::Execution ? executions_ : transfers_;
    }
    /// While it is so, the workspace is not idle.
    bool busy() const HEARTH_REQUIRES(mutex_);
    TimePoint idleAt() const HEARTH_REQUIRES(mutex_);  // max() when not idle-able, or paused
    TimePoint idleDue() const
        HEARTH_REQUIRES(mutex_);  // the same, but not while results are pending

    const WorkspaceFacts facts_;
    ContextSet contexts_;
    PauseGate gate_;
    mutable Mutex mutex_;
    std::shared_ptr<agent::AgentClient> agent_ HEARTH_GUARDED_BY(mutex_);
    std::optional<TimePoint> silent_since_ HEARTH_GUARDED_BY(mutex_);
    TimePoint answered_at_ HEARTH_GUARDED_BY(mutex_){};
    std::vector<std::weak_ptr<Detached>> detached_ HEARTH_GUARDED_BY(mutex_);
    std::map<std::string, std::string> labels_ HEARTH_GUARDED_BY(mutex_);
    TimePoint expires_at_ HEARTH_GUARDED_BY(mutex_){};                     // zero: never
    std::chrono::milliseconds idle_timeout_ HEARTH_GUARDED_BY(mutex_){0};  // zero: never
    TimePoint last_active_ HEARTH_GUARDED_BY(mutex_){};
    TimePoint last_write_ HEARTH_GUARDED_BY(mutex_){};
    unsigned executions_ HEARTH_GUARDED_BY(mutex_) = 0;
    unsigned transfers_ HEARTH_GUARDED_BY(mutex_) = 0;
    unsigned attended_ HEARTH_GUARDED_BY(mutex_) = 0;
    TimePoint warned_of_ HEARTH_GUARDED_BY(mutex_){};
    unsigned results_pending_ HEARTH_GUARDED_BY(mutex_) = 0;
    Condition results_kept_;
    bool ending_ HEARTH_GUARDED_BY(mutex_) = false;
    bool lost_ HEARTH_GUARDED_BY(mutex_) = false;  // ended so
    std::uint64_t oom_kills_ HEARTH_GUARDED_BY(mutex_) = 0;
    bool lost_to_memory_ HEARTH_GUARDED_BY(mutex_) = false;
};

}  // namespace hearth::controller
