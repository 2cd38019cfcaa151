#pragma once

#include "controller/claims/Supply.h"
#include "controller/queue/ReconcileLoop.h"
#include "controller/reconcile/AgentConnector.h"
#include "controller/reconcile/SandboxStarter.h"
#include "controller/reconcile/WarmReconnector.h"
#include "controller/workspaces/WorkspaceTerminator.h"
#include "pool/warm/Fleet.h"

namespace hearth::controller {

/// Brings one sandbox to its member's phase: starts members that are Creating, ends members that
/// are Draining, Failed or unknown, and follows the runtime's reports. The queue never runs one
/// sandbox twice at once, also not in two lanes, so its create and its destroy cannot meet.
class SandboxReconciler {
public:
    SandboxReconciler(const pool::Fleet& fleet, const Supply& supply, AgentConnector& agents,
                      SandboxStarter& starter, WarmReconnector& reconnector,
                      WorkspaceTerminator& terminator, UsageMeter& usage);

    /// Does the work on keys ("sandbox", id): ends it or checks it.
    ReconcileResult reconcile(const pool::SandboxId& id);
    /// Does the work on keys ("lost", id): losses that the threads reading agents have noticed.
    ReconcileResult lose(const pool::SandboxId& id);
    /// Does the work on keys ("weight", id): a Ready sandbox gets priority over others, so that its
    /// claim need not wait among busy ones; in every other phase it is equal to them. The runtime
    /// is told about claimed ones.
    ReconcileResult weigh(const pool::SandboxId& id);

private:
    /// Handles the runtime's news of a sandbox that should live. A claimed one on a node that takes
    /// no more work stays until the cluster ends it.
    void look(const pool::Member& member);
    void destroy(const pool::SandboxId& id);

    const pool::Fleet fleet_;
    const Supply supply_;
    AgentConnector& agents_;
    SandboxStarter& starter_;
    WarmReconnector& reconnector_;
    WorkspaceTerminator& terminator_;
    UsageMeter& usage_;
};

}  // namespace hearth::controller
