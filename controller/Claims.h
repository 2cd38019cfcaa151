#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "controller/ClaimQueue.h"
#include "controller/Endings.h"
#include "controller/SandboxReconciler.h"
#include "controller/WorkspaceTable.h"
#include "controller/broker/Broker.h"
#include "pool/ClaimMarks.h"

namespace hearth::controller {

/// Turns a request into a bound workspace: a place in the quota, a ready sandbox, the mark, the
/// bind (DESIGN section 2). Nothing is written to disk before it answers. Thread-safe.
class Claims {
public:
    Claims(WorkspaceTable& table, ClaimQueue& queue, SandboxReconciler& sandboxes,
           pool::ContainerRuntime& runtime, pool::ClaimMarks& marks, Endings& endings,
           WorkQueue& work, Journal& journal, EventLog& events, metrics::Metrics& metrics,
           metrics::Log& log, broker::Broker& broker, const Clock& clock);

    struct Wanted {
        PoolPtr pool;
        std::string workspace_id;
        std::string claim_id;
        const WorkspaceRequest* request = nullptr;
        pool::ImageStages image;  ///< what it took to have its image
        std::string tenant;
        bool one_shot = false;
        bool tell_why = false;  ///< who asks may know why a pool is degraded
    };

    struct Claimed {
        std::shared_ptr<Workspace> workspace;
        ClaimLedger ledger;
    };

    Claimed claim(const Wanted& wanted);

private:
    /// What of its pool's network a workspace gets.
    struct Network {
        broker::NetworkMode mode = broker::NetworkMode::None;
        std::vector<std::vector<std::string>> allow;  ///< WorkspaceFacts::allow
        std::shared_ptr<const broker::Keyring> keyring;
        std::string sealed;  ///< all of it, for its claim
    };
    static Network networkFor(const PoolSpec& spec, const WorkspaceRequest& request);
    /// The pool's credentials, and the claim's for where the workspace may go, as a keyring and
    /// what it is made of again.
    broker::Keyrings::Made keysFor(const Wanted& wanted, const Network& network) const;
    /// Adds the keyring, and seals whose the claim is and what the agent is told of the network.
    void close(const Wanted& wanted, Network& network) const;

    /// What is known of a bind before there is a sandbox for it.
    struct Binding {
        WorkspaceFacts facts;
        agent::BindRequest told;
    };
    /// Throws Error(PayloadTooLarge) for what no sandbox could be told.
    Binding prepare(const Wanted& wanted, const Network& network) const;
    /// Null where this sandbox failed and another may do. The member is never left claimed by
    /// nobody, whatever is thrown.
    std::shared_ptr<Workspace> bind(const Wanted& wanted, const Binding& binding,
                                    const pool::Member& member, std::uint32_t attempt,
                                    WorkspaceTable::Place& place);
    std::shared_ptr<Workspace> tryBind(const Wanted& wanted, const Binding& binding,
                                       const pool::Member& member, std::uint32_t attempt,
                                       WorkspaceTable::Place& place);

    /// Holds the sandbox to the limits of the claim, if it brought any; they are in `facts` then.
    /// False where it has gone, or has less than was asked for: another will do. Throws
    /// Error(InvalidSpec) where no sandbox of the pool could be held to them.
    bool narrow(const ClaimLimits& asked, const pool::Member& member, WorkspaceFacts& facts);

    WorkspaceTable& table_;
    ClaimQueue& queue_;
    SandboxReconciler& sandboxes_;
    pool::ContainerRuntime& runtime_;
    pool::ClaimMarks& marks_;
    Endings& endings_;
    WorkQueue& work_;
    Journal& journal_;
    EventLog& events_;
    metrics::Metrics& metrics_;
    metrics::Log& log_;
    broker::Broker& broker_;
    const Clock& clock_;
};

/// What an agent is told with the bind and tells back after a restart (PROTOCOL.md, `note`).
Json bindNote(const WorkspaceFacts& facts);
/// The facts again, from an agent's own word. Throws Error(InvalidArgument) on a note that is none
/// of ours.
WorkspaceFacts factsFrom(const agent::Binding& binding, const pool::SandboxId& sandbox);

}  // namespace hearth::controller
