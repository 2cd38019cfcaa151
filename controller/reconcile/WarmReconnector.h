#pragma once

#include <map>

#include "base/Mutex.h"
#include "controller/claims/Supply.h"
#include "controller/queue/ReconcileLoop.h"
#include "controller/reconcile/AgentConnector.h"
#include "controller/store/History.h"
#include "controller/workspaces/WorkspaceTerminator.h"
#include "pool/warm/Fleet.h"

namespace hearth::controller {

/// Reconnects to warm sandboxes whose connection has ended. In a cluster that is a fault of the
/// network in between, not of the sandbox; on one machine it is the sandbox's end. Until it
/// succeeds no claim gets the sandbox (WarmPool::claim). Thread-safe.
class WarmReconnector {
public:
    WarmReconnector(const pool::Fleet& fleet, const Supply& supply, AgentConnector& agents,
                    WorkspaceTerminator& terminator, const History& history);

    /// Reports that a connection has ended. False if this one is not to be made again.
    bool begin(const pool::SandboxId& id, const agent::AgentLost& loss);
    /// Tries once. The sandbox is given up when its Pod has ended, when its agent has changed,
    /// or when it has not answered for 30 s.
    ReconcileResult proceed(const pool::SandboxId& id);

private:
    void reconnect(const pool::Member& member);
    void forget(const pool::SandboxId& id);

    const pool::Fleet fleet_;
    const Supply supply_;
    AgentConnector& agents_;
    WorkspaceTerminator& terminator_;
    const History history_;
    Mutex mutex_;
    /// Sandboxes without a connection, with the time of its loss.
    std::map<pool::SandboxId, TimePoint> broken_ HEARTH_GUARDED_BY(mutex_);
};

}  // namespace hearth::controller
