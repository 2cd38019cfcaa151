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
#include "pool/warm/ClaimMarks.h"

namespace hearth::controller {

/// The facts of a workspace that never change after its bind; its agent returns them after a
/// restart, with a proof (BindNote). Of its network facts only the sealed part is trusted.
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
    std::chrono::milliseconds max_lifetime{0};  ///< the pool's: deadlines may not pass it; 0: none
    bool one_shot = false;
    bool count_running_work = true;            ///< the pool's (PoolSpec)
    std::chrono::milliseconds warn_before{0};  ///< the pool's
    bool pause_when_idle = false;              ///< the pool's, if the agent leaves it to the server
    egress::NetworkMode network = egress::NetworkMode::None;
    /// Every list must allow a destination: the pool's, and the claim's if it has one.
    std::vector<std::vector<std::string>> allow;
    /// Credentials of its requests to the outside; null: none.
    std::shared_ptr<const egress::Keyring> keyring = {};
    std::string sealed = {};  ///< network, allow and keyring, sealed by egress::ClaimSeal
    TraceContext trace = {};  ///< the claim's span
    /// Processor time of its sandbox before the claim; none: found after a restart.
    std::optional<std::uint64_t> cpu_before_ns = {};
};

/// Work in a sandbox that has lost its connection.
class Detached {
public:
    virtual ~Detached() = default;
    /// Called when its agent answers again, on this connection.
    virtual void rejoin(const std::shared_ptr<agent::AgentClient>& agent) = 0;
    /// Called when its workspace has ended; `lost`: with its sandbox.
    virtual void giveUp(bool lost) = 0;
};

/// The kinds of work during which a workspace is not idle.
enum class Activity : std::uint8_t { Execution, Transfer };

/// The end that a workspace comes to by itself, if nothing happens before.
struct NearEnd {
    EndReason reason;
    TimePoint at;
};

/// Returns the network policy of the workspace.
egress::NetworkPolicy networkPolicy(const WorkspaceFacts& facts);

/// One active workspace. Its agent holds the authoritative state; this is the server's copy in
/// memory. Thread-safe.
class Workspace {
public:
    Workspace(WorkspaceFacts facts, std::shared_ptr<agent::AgentClient> agent,
              std::map<std::string, std::string> labels, const agent::Deadlines& deadlines,
              TimePoint last_active);

    /// How long such an end waits for a disk that is slow or full.
    static constexpr std::chrono::seconds kResultsDurable{2};

    const WorkspaceFacts& facts() const { return facts_; }
    /// Returns another one after answers() got a new connection.
    std::shared_ptr<agent::AgentClient> agent() const;

    /// Records that its agent does not answer; false if that was known, or the end has begun.
    bool fallSilent(TimePoint now);
    /// Since when it has been silent; nullopt while it answers.
    std::optional<TimePoint> silentSince() const;
    /// When the agent last answered after a silence; zero: there was no silence.
    TimePoint answeredAt() const;
    /// Records that the agent answers again, on its connection or on this new one. Detached work
    /// continues with the new one.
    void answers(TimePoint now, std::shared_ptr<agent::AgentClient> agent = {});
    /// Calls `what` at the next connection or the end; not kept alive. False if the end has begun.
    bool detach(const std::shared_ptr<Detached>& what);
    /// Call once the end has begun: informs detached work.
    void giveUpDetached();
    /// True if it ended with its sandbox: as lost, or as out of memory.
    bool endedLost() const;
    /// Says if its sandbox's processes run; if it never pauses, it is only held and released.
    PauseGate& gate() { return gate_; }
    bool paused() const { return gate_.paused(); }
    ContextSet& contexts() { return contexts_; }
    const ContextSet& contexts() const { return contexts_; }

    /// Counts as activity. False once the end has begun.
    bool touch(TimePoint now);
    /// Work begins: the workspace is not idle until workEnded(), except if the work is an execution
    /// and the pool does not count running ones. False once the end has begun.
    bool workBegan(Activity what, TimePoint now);
    void workEnded(Activity what, TimePoint now);
    /// A client waits for an execution or follows it, until left() is called.
    void attended(TimePoint now);
    void left(TimePoint now);
    /// An execution has ended, and its result is not on disk yet: the workspace does not end as
    /// idle until resultKept() is called.
    void resultPending();
    void resultKept();
    /// Waits until all results are on disk; false if that takes longer. Call it before an end that
    /// a client asked for: results that were answered must survive a crash right after the end.
    bool awaitResults(std::chrono::milliseconds timeout = kResultsDurable);
    /// Files were written by other means than work.
    void wrote(TimePoint now);
    /// Returns when writing to its files last stopped; now while a write is still possible.
    TimePoint lastWrite(TimePoint now) const;
    /// Work in progress in it: executions and transfers.
    unsigned running() const;
    /// Records deadlines that the agent has acknowledged; the end is at most the pool's maximum.
    void deadlines(TimePoint expires_at, std::chrono::milliseconds idle_timeout);
    /// Makes all changes or none: throws Error(InvalidArgument) for more labels than allowed.
    void relabel(const std::map<std::string, std::optional<std::string>>& changes);

    /// Why it must end now, or be paused if idleness pauses it; nullopt if neither.
    std::optional<EndReason> due(TimePoint now) const;
    /// The end to warn its owner of now, once for each end: it is nearer than the pool's
    /// warnBefore, or than half of the time it had.
    std::optional<NearEnd> warning(TimePoint now);
    /// When the answer of due() may next change; TimePoint::max() for never.
    TimePoint nextDue() const;
    /// Begins the end; true for the first caller. With `only_if_due`, only if it is still due: an
    /// accepted activity and a reclaim never both succeed. `marks` has the end before anybody sees
    /// it here: whoever is told that it has ended is told so after a crash, too.
    bool beginEnd(EndReason reason, std::optional<TimePoint> only_if_due = {},
                  pool::ClaimMarks* marks = nullptr);
    bool active() const;
    /// Why it ends; nullopt while it is active.
    std::optional<EndReason> endReason() const;

    /// Reports the kernel's memory kills: true if `total` is more than known before.
    bool sawOom(std::uint64_t total);
    /// Reports that its sandbox was lost after `total` memory kills: if that is more than known
    /// before, it was lost to memory. Call before its end, so that its executions can report this
    /// when the sandbox and its count are gone.
    void lostWith(std::uint64_t total);
    /// The same if the runtime knows the reason but no count.
    void ranOutOfMemory();
    bool lostToMemory() const;
    WorkspaceView view() const;

private:
    /// Returns the counter of this kind of work.
    unsigned& countOf(Activity what) HEARTH_REQUIRES(mutex_) {
        return what == Activity::Execution ? executions_ : transfers_;
    }
    /// True while work keeps the workspace from being idle.
    bool busy() const HEARTH_REQUIRES(mutex_);
    TimePoint idleAt() const HEARTH_REQUIRES(mutex_);  // max() if it cannot be idle, or is paused
    TimePoint idleDue() const
        HEARTH_REQUIRES(mutex_);  // the same, but max() while results are pending

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
    std::optional<EndReason> end_ HEARTH_GUARDED_BY(mutex_);  // once its end has begun
    std::uint64_t oom_kills_ HEARTH_GUARDED_BY(mutex_) = 0;
    bool lost_to_memory_ HEARTH_GUARDED_BY(mutex_) = false;
};

}  // namespace hearth::controller
