#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "controller/claims/ClaimWait.h"
#include "controller/claims/Supply.h"
#include "controller/contract/Timeline.h"
#include "controller/egress/EgressGateway.h"
#include "controller/store/Epoch.h"
#include "controller/store/History.h"
#include "controller/workspaces/WorkspaceTable.h"
#include "controller/workspaces/WorkspaceTerminator.h"
#include "pool/runtime/ImageRuntime.h"
#include "pool/warm/Fleet.h"

namespace hearth::controller {

/// Turns a request into a bound workspace: a place in the quota, a ready sandbox, the mark, the
/// bind (ARCHITECTURE.md). Nothing is written to disk before it answers. Thread-safe.
class Claimer {
public:
    Claimer(WorkspaceTable& table, const Supply& supply, const Epoch& epoch,
            const pool::Fleet& fleet, WorkspaceTerminator& endings, const History& history,
            broker::EgressGateway& broker);

    struct Wanted {
        PoolPtr pool;
        std::string workspace_id;
        std::string claim_id;
        const WorkspaceRequest* request = nullptr;
        pool::ImageStages image;  ///< the time that its image took
        std::string tenant;
        TraceContext trace;
        bool one_shot = false;
        bool tell_why = false;  ///< the caller may see why a pool is degraded
    };

    struct Claimed {
        std::shared_ptr<Workspace> workspace;
        ClaimLedger ledger;
        TimePoint bound{};  ///< when a new one was bound: the end of its ledger's time
    };

    /// `kept`: the claim's state, also from earlier runs if it waits without a thread.
    Claimed claim(const Wanted& wanted, ClaimWait& kept);
    /// Binds all of them or none. They are of one request and one pool: they wait in line as one,
    /// and the ones already bound end if another fails.
    std::vector<Claimed> claimAll(const std::vector<Wanted>& all, ClaimWait& kept);

private:
    /// The part of its pool's network that a workspace gets.
    struct Network {
        broker::NetworkMode mode = broker::NetworkMode::None;
        std::vector<std::vector<std::string>> allow;  ///< WorkspaceFacts::allow
        std::vector<broker::Credential> credentials;  ///< the claim's own
        std::shared_ptr<const broker::Keyring> keyring;
        std::string sealed;  ///< all of it, sealed for its claim
    };
    static Network networkFor(const PoolSpec& spec, const WorkspaceRequest& request);
    /// Returns the claim's credentials; all are for destinations that the workspace may reach.
    static std::vector<broker::Credential> credentialsFor(const Wanted& wanted,
                                                          const Network& network);
    /// Checks all of it that costs little, before the claim takes anything. Makes no keys.
    static Network check(const Wanted& wanted);
    /// Adds the keyring, and seals the claim's owner and the network facts that the agent keeps.
    void close(const Wanted& wanted, Network& network) const;
    /// Throws Error(PayloadTooLarge) if the claim is too large for any sandbox.
    ClaimBinding prepare(const Wanted& wanted, Network network) const;
    /// Throws Error(PayloadTooLarge) unless a sandbox can take the binding with the request's
    /// values.
    void requireFits(const ClaimBinding& binding, const WorkspaceRequest& request) const;
    /// Adds the request's labels, variables and secrets; a waiting claim's binding is without them.
    static void addValues(const WorkspaceRequest& request, agent::BindRequest& told);
    /// True if a claim that has to wait keeps nothing and is made again: its keys, which are
    /// expensive, are then made only when it has a sandbox.
    static bool startsAnew(const WorkspaceRequest& request) {
        return !request.patience.waits && !request.patience.wait;
    }
    /// Does prepareAll() for claims that have their sandboxes, and gives these back if it throws.
    void prepareFor(ClaimWait& kept, std::span<const Wanted> all, const Network& network,
                    std::span<const pool::Member> members) const;
    /// Prepares the claims, unless an earlier run of this one has done so.
    void prepareAll(ClaimWait& kept, std::span<const Wanted> all, const Network& network) const;
    /// Throws NoLanguage and gives the member back: earlier there was no member to ask.
    void requireLanguage(const WorkspaceRequest& request, const pool::Member& member);
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
    /// Records the state that the claim meets, when it asks for its sandbox for the first time.
    void ask(ClaimWait& kept, const std::string& pool) const;
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

    /// Limits the sandbox if the claim asks for it, and puts the limits into `facts`. False if
    /// the sandbox is gone or has lower limits than requested: another one will do. Throws
    /// Error(InvalidSpec) if no sandbox of the pool can have these limits.
    bool narrow(const ClaimLimits& asked, const pool::Member& member, WorkspaceFacts& facts);

    WorkspaceTable& table_;
    const Supply supply_;
    const Epoch& epoch_;
    const pool::Fleet fleet_;
    WorkspaceTerminator& endings_;
    const History history_;
    broker::EgressGateway& broker_;
};

}  // namespace hearth::controller
