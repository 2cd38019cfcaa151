#pragma once

#include <chrono>
#include <map>
#include <string>

#include "base/Clock.h"
#include "base/Mutex.h"
#include "controller/queue/ReconcileLoop.h"
#include "controller/queue/WorkQueue.h"
#include "controller/store/History.h"
#include "controller/workspaces/WorkspaceTerminator.h"
#include "pool/warm/WarmPool.h"

namespace hearth::controller {

/// Checks that the agents of ready sandboxes answer, so that no claim meets a dead one. If most of
/// a pool are silent, the machine is busy, and none is replaced. Never asks about a claimed
/// sandbox, which belongs to its workspace. Thread-safe.
class ReadyProbe {
public:
    static constexpr std::chrono::milliseconds kAnswerWithin{2000};

    ReadyProbe(const pool::WarmPool& warm, WorkspaceTerminator& terminator, WorkQueue& work,
               const History& history, std::chrono::milliseconds patience = kAnswerWithin)
        : warm_(warm),
          terminator_(terminator),
          work_(work),
          history_(history),
          patience_(patience) {}

    /// Does the work on ("probes", "all"): adds a key for every ready sandbox. Comes back.
    ReconcileResult look();
    /// Does the work on keys ("probe", id): replaces a sandbox that has not answered several times
    /// in a row.
    ReconcileResult probe(const pool::SandboxId& id);

private:
    void forget(const pool::SandboxId& id);

    const pool::WarmPool& warm_;
    WorkspaceTerminator& terminator_;
    WorkQueue& work_;
    const History history_;
    const std::chrono::milliseconds patience_;
    Mutex mutex_;
    struct Silent {
        std::string pool;
        unsigned times = 0;  ///< in a row
    };
    std::map<pool::SandboxId, Silent> silent_ HEARTH_GUARDED_BY(mutex_);
};

}  // namespace hearth::controller
