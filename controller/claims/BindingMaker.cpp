#include "controller/claims/BindingMaker.h"

#include <utility>

#include "base/Error.h"
#include "base/JsonText.h"
#include "controller/contract/RequestLimits.h"
#include "controller/workspaces/BindNote.h"
#include "pool/agent/connection/AgentMessages.h"
#include "pool/agent/protocol/Frame.h"

namespace hearth::controller {
namespace {

/// Bytes reserved for the numbers in a bind that are known only once its sandbox is.
constexpr std::size_t kRoomForNumbers = 512;
/// Bytes around a value: quotes, a colon, a comma.
constexpr std::size_t kRoomForSigns = 8;

std::size_t roughSize(const std::map<std::string, std::string>& values) {
    std::size_t size = 0;
    for (const auto& [name, value] : values) size += name.size() + value.size() + kRoomForSigns;
    return size;
}

/// Bytes of a claim's data, before escaping, and everything that stands around them.
std::size_t roughSize(const ClaimBinding& claim, const WorkspaceRequest& request) {
    const agent::BindRequest& bind = claim.bind;
    return claim.facts.sealed.size() + claim.facts.name.size() + bind.trust.size() +
           bind.fingerprint.size() + bind.tenant.size() + bind.claim_id.size() +
           bind.workspace_id.size() + roughSize(bind.env) + roughSize(request.labels) +
           roughSize(request.env) + roughSize(request.secrets) + kRoomForNumbers;
}

BindingMaker::Network networkFor(const PoolSpec& spec, const WorkspaceRequest& request) {
    BindingMaker::Network out;
    out.mode = request.network.value_or(spec.network);
    if (out.mode > spec.network) {
        const std::string offered = egress::kNetworkModes.of(spec.network);
        throw Error(ErrorCode::InvalidSpec, "the pool's network is " + offered + ", not " +
                                                egress::kNetworkModes.of(out.mode))
            .field("/network", "asks for more than the pool offers");
    }
    const bool egress = out.mode == egress::NetworkMode::Egress;
    if (egress) out.allow.push_back(spec.network_allow);
    if (!request.allow) return out;
    if (!egress) {
        throw Error(ErrorCode::InvalidSpec, "an allow-list needs network Egress")
            .field("/allow", "needs network Egress");
    }
    for (std::size_t i = 0; i < request.allow->size(); ++i) {
        if (const auto wrong = egress::AllowList::wrong((*request.allow)[i])) {
            throw Error(ErrorCode::InvalidArgument, *wrong)
                .field("/allow/" + std::to_string(i), "is not a destination");
        }
    }
    out.allow.push_back(*request.allow);
    return out;
}

/// Returns the claim's credentials; all are for destinations that the workspace may reach.
std::vector<egress::Credential> credentialsFor(const BindingMaker::Wanted& wanted,
                                               const BindingMaker::Network& network) {
    if (wanted.request->credentials.is_null()) return {};
    std::vector<egress::Credential> of_claim =
        egress::readClaimCredentials(wanted.request->credentials, wanted.tenant, "/credentials");
    if (of_claim.empty()) return of_claim;
    if (network.mode != egress::NetworkMode::Egress) {
        throw Error(ErrorCode::InvalidSpec, "credentials need network Egress")
            .field("/credentials", "needs network Egress");
    }
    WorkspaceFacts reach;
    reach.network = network.mode;
    reach.allow = network.allow;
    const egress::NetworkPolicy policy = networkPolicy(reach);
    for (std::size_t i = 0; i < of_claim.size(); ++i) {
        const std::string pointer = "/credentials/" + std::to_string(i);
        if (!policy.allows(of_claim[i].destination)) {
            throw Error(ErrorCode::InvalidSpec, of_claim[i].destination.text() +
                                                    " is not on the allow-list of this workspace")
                .field(pointer + "/host", "is not allowed");
        }
        for (const egress::Credential& credential : wanted.pool->spec.network_credentials) {
            if (!egress::collide(credential, of_claim[i])) continue;
            throw Error(ErrorCode::InvalidSpec, "the pool has a credential for this already")
                .field(pointer, "is set by the pool already");
        }
    }
    return of_claim;
}

/// Adds the keyring, and seals the claim's owner and the network facts that the agent keeps.
void sealFacts(const BindingMaker::Wanted& wanted,
               const std::vector<egress::Credential>& credentials, egress::EgressGateway& gateway,
               WorkspaceFacts& facts) {
    egress::KeyringFactory::Made keys;
    if (facts.network == egress::NetworkMode::Egress) {
        keys = gateway.keyrings().make(wanted.pool->spec.network_credentials, credentials);
    }
    facts.keyring = std::move(keys.keyring);
    facts.sealed = gateway.claimSeal().close(
        {facts.network, facts.allow, std::move(keys.kept), wanted.tenant, wanted.workspace_id},
        wanted.claim_id);
    // A sandbox that gets too much data refuses the claim and is lost.
    const std::size_t told = facts.sealed.size() + dumpJson(Json(wanted.request->labels)).size() +
                             dumpJson(Json(wanted.request->name.value_or(""))).size();
    if (told > kMostTold) {
        throw Error(ErrorCode::InvalidArgument,
                    "name, labels, allow and credentials are too large for a sandbox")
            .hint("together they may have at most 56 KiB, with allow and credentials in base64");
    }
}

/// Throws Error(PayloadTooLarge) unless a sandbox can take the binding with these values.
void requireFits(const ClaimBinding& binding, const WorkspaceRequest& request,
                 const egress::ClaimSeal& seal) {
    // Encode only a claim that could be too large.
    if (kMostEscaped * roughSize(binding, request) + kRoomForNumbers <= agent::kMaxPayload) return;
    agent::BindRequest whole = binding.bind;
    BindingMaker::addValues(request, whole);
    whole.note = bindNote(binding.facts, seal);
    if (agent::encodeBind(whole).size() + kRoomForNumbers <= agent::kMaxPayload) return;
    throw Error(ErrorCode::PayloadTooLarge, "the claim is too large for a sandbox")
        .hint(
            "env, secrets and labels may have at most 256 KiB together; put larger values into "
            "files");
}

}  // namespace

BindingMaker::Network BindingMaker::check(const Wanted& wanted) {
    Network network = networkFor(wanted.pool->spec, *wanted.request);
    network.credentials = credentialsFor(wanted, network);
    return network;
}

ClaimBinding BindingMaker::make(const Wanted& wanted, const Network& network) const {
    const WorkspaceRequest& request = *wanted.request;
    ClaimBinding out;
    WorkspaceFacts& facts = out.facts;
    facts.id = wanted.workspace_id;
    facts.tenant = wanted.tenant;
    facts.pool = wanted.pool->name;
    facts.claim_id = wanted.claim_id;
    facts.fingerprint = request.fingerprint;
    facts.name = request.name.value_or("");
    facts.max_lifetime = wanted.pool->spec.max_lifetime;
    facts.one_shot = wanted.one_shot;
    facts.count_running_work = wanted.pool->spec.count_running_work;
    facts.warn_before = wanted.pool->spec.warn_before;
    facts.pause_when_idle = wanted.pool->spec.on_idle == OnIdle::Pause && !wanted.one_shot;
    facts.network = network.mode;
    facts.allow = network.allow;
    facts.trace = wanted.trace;
    sealFacts(wanted, network.credentials, gateway_, facts);

    agent::BindRequest& bind = out.bind;
    bind.claim_id = facts.claim_id;
    bind.tenant = facts.tenant;
    bind.workspace_id = facts.id;
    bind.fingerprint = facts.fingerprint;
    bind.env = gateway_.environment(facts.network);
    if (facts.keyring && facts.keyring->authority() != nullptr) {
        bind.trust = facts.keyring->authority()->certificatePem();
    }
    requireFits(out, request, gateway_.claimSeal());
    return out;
}

void BindingMaker::addValues(const WorkspaceRequest& request, agent::BindRequest& bind) {
    bind.labels = request.labels;
    for (const auto& [name, value] : request.env) bind.env[name] = value;
    bind.secrets = request.secrets;
}

}  // namespace hearth::controller
