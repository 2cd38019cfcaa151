#pragma once

#include "controller/claims/Supply.h"
#include "controller/contract/Pools.h"
#include "controller/reconcile/PoolReconciler.h"
#include "controller/store/History.h"
#include "controller/workspaces/WorkspaceTerminator.h"

namespace hearth::controller {

/// The Pools for the protocol surfaces. Thread-safe.
class PoolService final : public Pools {
public:
    /// The runtime's traits that decide if a pool is possible on it.
    struct RuntimeTraits {
        std::string name;
        bool freezes = false;     ///< it can pause sandboxes on this machine
        bool in_cluster = false;  ///< pools may name a runtime class
        std::string own_claim;    ///< the claim of the servers' own volume; empty: none
    };

    PoolService(SpecStore& specs, PoolReconciler& reconciler, const Supply& supply,
                WorkspaceTable& table, WorkspaceTerminator& terminator, const History& history,
                RuntimeTraits runtime);

    std::vector<PoolView> list(const Principal& who) override;
    PoolView get(const Principal& who, const std::string& name) override;
    PoolView create(const Principal& who, const Json& document) override;
    PoolView put(const Principal& who, const std::string& name, const Json& document,
                 std::optional<std::int64_t> if_match, bool& created) override;
    PoolView patch(const Principal& who, const std::string& name, const Json& merge,
                   std::optional<std::int64_t> if_match) override;
    void remove(const Principal& who, const std::string& name) override;
    std::uint32_t drain(const Principal& who, const std::string& name) override;
    std::uint32_t drainAll(const Principal& who) override;
    void undrainAll(const Principal& who) override;
    std::vector<SandboxView> sandboxes(const Principal& who,
                                       const std::optional<std::string>& pool) override;
    SandboxView sandbox(const Principal& who, const std::string& id) override;
    void destroySandbox(const Principal& who, const std::string& id) override;

    /// Declares a pool that a file or a cluster's object names; equal specs change nothing.
    void declare(const Pool& pool);
    /// Like remove(), when the object that declared it is gone. No effect if there is no such pool.
    void withdraw(const std::string& name);

private:
    /// An on-demand pool reveals that a tenant runs an image: a user sees it only with a workspace
    /// in it.
    bool mayKnow(const Principal& who, const Pool& pool) const;
    /// Hides the reasons of failures except from operators: they may reveal the host.
    PoolStatus statusFor(const Principal& who, const std::string& name) const;
    void markDeleting(const Principal& who, const std::string& name);
    PoolView store(const Principal& who, Pool pool, SpecStore::Mode mode,
                   std::optional<std::int64_t> if_match, bool& created);
    /// Ends its workspace, or retires it. A sandbox that is just being claimed stays as it is.
    void endSandbox(const pool::Member& member, EndReason reason, const TraceContext& trace);
    /// Ends these sandboxes and waits until they are gone, at most a minute.
    std::uint32_t endAndWait(const std::vector<pool::Member>& members, const TraceContext& trace);
    /// True if it holds, or may hold, a workspace, and its agent does not answer.
    bool isSuspect(const pool::Member& member) const;
    SandboxView view(const pool::Member& member) const;

    SpecStore& specs_;
    PoolReconciler& reconciler_;
    const Supply supply_;
    WorkspaceTable& table_;
    WorkspaceTerminator& terminator_;
    const History history_;
    const RuntimeTraits runtime_;
};

}  // namespace hearth::controller
