#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/Clock.h"
#include "controller/ContextSet.h"
#include "controller/Workspaces.h"
#include "controller/broker/NetworkPolicy.h"
#include "controller/broker/credentials/Keyring.h"
#include "pool/agent/AgentClient.h"
#include "pool/spec/SandboxSpec.h"

namespace hearth::controller {

/// What of a workspace never changes after its bind, and is told back by its agent after a
/// restart; of the network only the sealed part is believed.
struct WorkspaceFacts {
    std::string id;
    std::string tenant;
    std::string pool;
    pool::SandboxId sandbox;
    std::string claim_id;
    std::string fingerprint;
    std::string name;
    pool::SandboxLimits limits;
    WallTime created{};
    TimePoint created_at{};
    std::chrono::milliseconds max_lifetime{0};  ///< of the pool: deadlines may not pass it; 0: none
    bool one_shot = false;
    broker::NetworkMode network = broker::NetworkMode::None;
    /// Each list must allow a destination: the pool's, and the claim's if it brought one.
    std::vector<std::vector<std::string>> allow;
    /// What its requests to the outside carry; null: nothing.
    std::shared_ptr<const broker::Keyring> keyring = {};
    std::string sealed = {};  ///< of network, allow and keyring, by broker::ClaimSeal
};

/// What the workspace may reach.
broker::NetworkPolicy networkPolicy(const WorkspaceFacts& facts);

/// One active workspace. The sandbox's agent holds the truth; this is the server's copy of it, in
/// memory. Thread-safe.
class Workspace {
public:
    Workspace(WorkspaceFacts facts, std::shared_ptr<agent::AgentClient> agent,
              std::map<std::string, std::string> labels, const agent::Deadlines& deadlines,
              TimePoint last_active);

    const WorkspaceFacts& facts() const { return facts_; }
    agent::AgentClient& agent() const { return *agent_; }
    ContextSet& contexts() { return contexts_; }
    const ContextSet& contexts() const { return contexts_; }

    /// Counts as activity. False once the end has begun.
    bool touch(TimePoint now);
    /// An execution or a file transfer begins: the workspace is not idle until workEnded().
    bool workBegan(TimePoint now);
    void workEnded(TimePoint now);
    /// Files were written by other means.
    void wrote(TimePoint now);
    /// When somebody last stopped writing to its files; now while anybody may still.
    TimePoint lastWrite(TimePoint now) const;
    /// What is at work in it: executions and transfers.
    unsigned running() const;
    /// Records what the agent has acknowledged.
    void deadlines(TimePoint expires_at, std::chrono::milliseconds idle_timeout);
    /// All of it or nothing: throws Error(InvalidArgument) for more labels than there may be.
    void relabel(const std::map<std::string, std::optional<std::string>>& changes);

    /// Why it must end now; nullopt if it need not.
    std::optional<std::string> due(TimePoint now) const;
    /// When due() may next say something else; TimePoint::max() for never.
    TimePoint nextDue() const;
    /// Begins the end; true for the first caller. With `only_if_due`, only if it is still due: an
    /// accepted activity and a reclaim never both win.
    bool beginEnd(const std::string& reason, std::optional<TimePoint> only_if_due = {});
    bool active() const;

    /// The kernel has killed for memory: true if `total` is more than was known before.
    bool sawOom(std::uint64_t total);
    WorkspaceView view() const;

private:
    TimePoint idleAt() const;  // mutex_ held; max() when not idle-able

    const WorkspaceFacts facts_;
    const std::shared_ptr<agent::AgentClient> agent_;
    ContextSet contexts_;
    mutable std::mutex mutex_;
    std::map<std::string, std::string> labels_;  // guarded by mutex_
    TimePoint expires_at_{};                     // guarded by mutex_; zero: never
    std::chrono::milliseconds idle_timeout_{0};  // guarded by mutex_; zero: never
    TimePoint last_active_{};                    // guarded by mutex_
    TimePoint last_write_{};                     // guarded by mutex_
    unsigned running_ = 0;                       // guarded by mutex_
    bool ending_ = false;                        // guarded by mutex_
    std::uint64_t oom_kills_ = 0;                // guarded by mutex_
};

}  // namespace hearth::controller
