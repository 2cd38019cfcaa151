#pragma once

#include <map>
#include <memory>
#include <string>

#include "controller/queue/ReconcileLoop.h"
#include "controller/queue/WorkQueue.h"
#include "controller/store/History.h"
#include "controller/workspaces/Workspace.h"
#include "controller/workspaces/WorkspaceTable.h"
#include "controller/workspaces/WorkspaceTerminator.h"
#include "pool/runtime/SandboxRuntime.h"

namespace hearth::controller {

/// Keeps the processes of a workspace's sandbox running while it lives.
class [[nodiscard]] Awake {
public:
    /// Takes over a hold of the workspace's gate.
    explicit Awake(std::shared_ptr<Workspace> workspace) : workspace_(std::move(workspace)) {}
    Awake(Awake&&) noexcept = default;
    Awake& operator=(Awake&&) = delete;
    ~Awake() {
        if (workspace_) workspace_->gate().release();
    }

private:
    std::shared_ptr<Workspace> workspace_;
};

/// Pauses idle workspaces whose pools ask for it (onIdle: Pause): their sandboxes are frozen and
/// keep their memory until the next call. Thread-safe.
class Pauser {
public:
    Pauser(WorkspaceTable& table, WorkspaceTerminator& terminator, pool::SandboxRuntime& runtime,
           WorkQueue& work, const History& history);

    /// Call before any call to the workspace's agent: thaws the workspace if it is paused, which
    /// counts as activity. Error(Unavailable) if it cannot be thawed.
    Awake awake(const std::shared_ptr<Workspace>& workspace);
    /// Pauses an idle workspace soon, on a thread that may wait for the runtime.
    void soon(const Workspace& workspace);
    /// Does the work on keys ("pause", workspace). Reclaims a workspace that cannot be frozen.
    ReconcileResult pause(const std::string& workspace);
    /// Publishes how many workspaces of each pool are paused; a pool that is not named has none.
    void publish(const std::map<std::string, std::size_t>& paused);

private:
    void tell(const Workspace& workspace, bool paused) const;

    WorkspaceTable& table_;
    WorkspaceTerminator& terminator_;
    pool::SandboxRuntime& runtime_;
    WorkQueue& work_;
    const History history_;
    std::map<std::string, std::size_t> published_;  ///< used only by the reclaimer's thread
};

}  // namespace hearth::controller
