#pragma once

#include <string>
#include <vector>

#include "controller/egress/EgressGateway.h"
#include "controller/workspaces/Workspace.h"
#include "pool/runtime/ImageRuntime.h"

namespace hearth::controller {

/// The facts of a bind that are known before its sandbox is.
struct ClaimBinding {
    WorkspaceFacts facts;
    agent::BindRequest bind;
};

/// Checks what a claim asks for, and makes its keys and its binding. Thread-safe.
class BindingMaker {
public:
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

    /// The part of its pool's network that a workspace gets.
    struct Network {
        egress::NetworkMode mode = egress::NetworkMode::None;
        std::vector<std::vector<std::string>> allow;  ///< WorkspaceFacts::allow
        std::vector<egress::Credential> credentials;  ///< the claim's own
    };

    explicit BindingMaker(egress::EgressGateway& gateway) : gateway_(gateway) {}

    /// Checks all of it that costs little, before the claim takes anything. Makes no keys.
    static Network check(const Wanted& wanted);
    /// Throws Error(PayloadTooLarge) if the claim is too large for any sandbox.
    ClaimBinding make(const Wanted& wanted, const Network& network) const;
    /// Adds the request's labels, variables and secrets; a waiting claim's binding is without them.
    static void addValues(const WorkspaceRequest& request, agent::BindRequest& bind);

private:
    egress::EgressGateway& gateway_;
};

}  // namespace hearth::controller
