#pragma once

#include <map>
#include <string>

#include "base/Mutex.h"
#include "controller/Recovery.h"
#include "controller/queue/ReconcileLoop.h"
#include "controller/store/History.h"
#include "controller/store/SpecStore.h"
#include "controller/workspaces/Pauser.h"
#include "controller/workspaces/WorkspaceTable.h"
#include "pool/runtime/SandboxRuntime.h"

namespace hearth::controller {

/// Asks silent sandboxes that hold a workspace until they answer, whether silent since the start or
/// since later. Such a sandbox ends only if the runtime reports its end, or when
/// its silence has lasted longer than its pool allows. Thread-safe.
class SuspectSandboxes {
public:
    SuspectSandboxes(Recovery& recovery, pool::SandboxRuntime& runtime, WorkspaceTable& table,
                     const SpecStore& specs, WorkspaceTerminator& terminator, Pauser& pauser,
                     const History& history)
        : recovery_(recovery),
          runtime_(runtime),
          table_(table),
          specs_(specs),
          terminator_(terminator),
          pauser_(pauser),
          history_(history) {}

    /// Work of kind "suspect", named by the sandbox. `patience`: for this one question.
    ReconcileResult reconcile(const pool::SandboxId& id,
                              std::chrono::milliseconds patience = Recovery::kFirstAnswer);

private:
    struct Silence {
        std::string pool;
        TimePoint since{};
        unsigned asked = 0;
        bool told = false;
    };

    /// nullopt if no workspace waits for it any more.
    std::optional<Silence> silenceOf(const pool::SandboxId& id);
    /// Throws agent::AgentLost, agent::AgentError while it does not answer.
    void ask(const pool::SandboxInfo& info, const Silence& silence,
             std::chrono::milliseconds patience);
    ReconcileResult later(const pool::SandboxId& id, Silence silence, const std::string& why);
    void forget(const pool::SandboxId& id, bool answered);
    void count(const std::string& pool) HEARTH_REQUIRES(mutex_);

    Recovery& recovery_;
    pool::SandboxRuntime& runtime_;
    WorkspaceTable& table_;
    const SpecStore& specs_;
    WorkspaceTerminator& terminator_;
    Pauser& pauser_;
    const History history_;
    Mutex mutex_;
    std::map<pool::SandboxId, Silence> silent_ HEARTH_GUARDED_BY(mutex_);
};

}  // namespace hearth::controller
