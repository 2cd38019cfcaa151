#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "base/Json.h"
#include "pool/spec/SandboxSpec.h"

namespace hearth::pool::kubernetes {

/// The port that the agents of Pods listen on.
inline constexpr std::uint16_t kAgentPort = 7017;

/// Labels and annotations that identify a Pod of this server.
inline constexpr const char* kInstanceLabel = "hearth.dev/instance";
inline constexpr const char* kSandboxLabel = "hearth.dev/sandbox";
inline constexpr const char* kPoolLabel = "hearth.dev/pool";
inline constexpr const char* kClaimedLabel = "hearth.dev/claimed";  ///< "true" after a claim
inline constexpr const char* kCreatedNote = "hearth.dev/created";   ///< milliseconds since 1970
inline constexpr const char* kLabelsNote = "hearth.dev/labels";     ///< SandboxSpec's, as JSON

/// Container names: the init container, which reports the agent's public key; the sandbox's.
inline constexpr const char* kInitContainer = "agent";
inline constexpr const char* kSandboxContainer = "sandbox";

/// The inputs of a Pod besides its sandbox's spec.
struct PodPlaces {
    SandboxId id;
    std::string instance;
    std::string agent_image;  ///< its agent folder is /hearth
    std::string server_key;   ///< the public half, 64 digits
    std::int64_t created_unix_ms = 0;
    Json owner = {};               ///< an ownerReferences entry; null: none
    std::string layer_claim = {};  ///< the claim of the volume with its layer
    std::string layer = {};        ///< the layer's folder there; empty: none
};

/// The Pod's name: the id's digits, because a name has no underscore.
std::string podName(const SandboxId& id);

/// Returns the Pod of one sandbox, hardened as the level "restricted" of Pod Security demands, and
/// further: no token, no service variables, a read-only root, the tenant's files on two volumes
/// with a size. Additions of the spec's template replace nothing in it.
Json podManifest(const SandboxSpec& spec, const PodPlaces& places);

}  // namespace hearth::pool::kubernetes
