#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/task/Task.h"
#include "controller/claims/BindingMaker.h"
#include "controller/claims/Supply.h"
#include "controller/contract/Timeline.h"
#include "controller/store/Epoch.h"
#include "controller/store/History.h"
#include "controller/workspaces/WorkspaceTable.h"
#include "controller/workspaces/WorkspaceTerminator.h"
#include "pool/warm/Fleet.h"

namespace hearth::controller {

/// Turns a request into a bound workspace: a place in the quota, a ready sandbox, the mark, the
/// bind (ARCHITECTURE.md). Nothing is written to disk before it answers. Thread-safe.
class Claimer {
public:
    Claimer(WorkspaceTable& table, const Supply& supply, const Epoch& epoch,
            const pool::Fleet& fleet, WorkspaceTerminator& terminator, const History& history,
            egress::EgressGateway& gateway);

    using Wanted = BindingMaker::Wanted;

    struct Claimed {
        std::shared_ptr<Workspace> workspace;
        ClaimLedger ledger;
        TimePoint bound{};  ///< when a new one was bound: the end of its ledger's time
    };

    /// Binds all of them or none. They are of one request, which outlives the task, and one pool:
    /// they wait in line as one, and the ones already bound end if another fails. A single one
    /// tries another sandbox if its own fails.
    Task<std::vector<Claimed>> claim(std::vector<Wanted> all);

private:
    /// Throws NoLanguage and gives the member back: only an agent knows its languages.
    void requireLanguage(const WorkspaceRequest& request, const pool::Member& member);
    /// A claim on its way.
    struct Order {
        std::vector<Wanted> all;
        BindingMaker::Network network;
        std::vector<WorkspaceTable::Place> places;  ///< in the quota, held while it stands in line
        std::vector<ClaimBinding> bindings;
        ClaimScene scene;  ///< the state when it asked for its sandboxes
        std::uint32_t attempt = 1;
        TimePoint begin{};   ///< when it came
        TimePoint asked{};   ///< when it asked for its sandboxes
        TimePoint picked{};  ///< when it got them
    };
    /// Throws Error(InvalidSpec) for a claim of several that its pool can never serve.
    void requireAttainable(const std::vector<Wanted>& all) const;
    /// Takes the order's places in the quota, unless it has them.
    void reserve(Order& order);
    /// Binds the order's workspaces to these sandboxes; none if a single one failed and another
    /// sandbox may do.
    std::vector<Claimed> bindAll(Order& order, const std::vector<pool::Member>& members);
    /// The same for one of them; null if its sandbox failed.
    std::shared_ptr<Workspace> bindOne(Order& order, std::size_t at, const pool::Member& member);
    /// The times at which a claim came, asked for a sandbox, got it, and was bound.
    struct Times {
        TimePoint begin;
        TimePoint asked;
        TimePoint picked;
        TimePoint bound;
    };
    /// One try to bind a claim to a sandbox.
    struct Attempt {
        const pool::Member& member;
        std::uint32_t number;
        Times times;  ///< up to the pick
        const ClaimScene& scene;
    };
    /// Records the state that the claim meets when it asks for its sandboxes.
    void ask(Order& order) const;
    ClaimStory storyOf(const Wanted& wanted, const Attempt& attempt) const;
    static ClaimLedger ledgerOf(const Wanted& wanted, const pool::Member& member,
                                const Times& times, const ClaimScene& scene);
    /// Returns the workspace's part of its tenant's quota, in a sandbox with these limits and
    /// this number of GPUs.
    static QuotaUse demand(const Wanted& wanted, const pool::SandboxLimits& of, std::size_t gpus);
    /// Checks that the quota covers this sandbox; else throws, and gives it back. `again`: another
    /// sandbox has failed before.
    void requireQuota(const Wanted& wanted, const pool::Member& member,
                      WorkspaceTable::Place& place, bool again);
    /// Null if this sandbox failed and another one may do. Whatever is thrown, the member does not
    /// stay claimed without a workspace.
    std::shared_ptr<Workspace> bind(const Wanted& wanted, const ClaimBinding& binding,
                                    const Attempt& attempt, WorkspaceTable::Place& place);
    std::shared_ptr<Workspace> tryBind(const Wanted& wanted, const ClaimBinding& binding,
                                       const Attempt& attempt, WorkspaceTable::Place& place);
    /// Returns the workspace's facts in this sandbox, as of now.
    WorkspaceFacts factsOf(const Wanted& wanted, const ClaimBinding& binding,
                           const pool::Member& member) const;
    /// Returns the message to the sandbox's agent, without the note.
    agent::BindRequest bindOf(const Wanted& wanted, const ClaimBinding& binding,
                              const WorkspaceFacts& facts, std::uint32_t attempt) const;
    /// Marks the sandbox, limits it, binds it and opens its network. False if it failed and another
    /// one may do.
    bool occupy(const ClaimLimits& limits, const pool::Member& member, WorkspaceFacts& facts,
                agent::BindRequest& bind);

    /// Limits the sandbox if the claim asks for it, and puts the limits into `facts`. False if
    /// the sandbox is gone or has lower limits than requested: another one will do. Throws
    /// Error(InvalidSpec) if no sandbox of the pool can have these limits.
    bool narrow(const ClaimLimits& asked, const pool::Member& member, WorkspaceFacts& facts);

    WorkspaceTable& table_;
    const Supply supply_;
    const Epoch& epoch_;
    const pool::Fleet fleet_;
    WorkspaceTerminator& terminator_;
    const History history_;
    egress::EgressGateway& gateway_;
    const BindingMaker bindings_{gateway_};
};

}  // namespace hearth::controller
