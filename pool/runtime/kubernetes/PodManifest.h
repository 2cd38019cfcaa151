#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "base/Json.h"
#include "pool/spec/SandboxSpec.h"

namespace hearth::pool::kubernetes {

/// The port that the agents of Pods listen on.
inline constexpr std::uint16_t kAgentPort = 7017;

/// Labels and annotations by which a Pod is known as ours.
inline constexpr const char* kInstanceLabel = "hearth.dev/instance";
inline constexpr const char* kSandboxLabel = "hearth.dev/sandbox";
inline constexpr const char* kPoolLabel = "hearth.dev/pool";
inline constexpr const char* kClaimedLabel = "hearth.dev/claimed";  ///< "true" after a claim
inline constexpr const char* kCreatedNote = "hearth.dev/created";   ///< milliseconds since 1970
inline constexpr const char* kLabelsNote = "hearth.dev/labels";     ///< SandboxSpec's, as JSON

/// The init container whose termination message is the agent's public key, and the sandbox's own.
inline constexpr const char* kInitContainer = "agent";
inline constexpr const char* kSandboxContainer = "sandbox";

/// What a Pod gets besides its sandbox's spec.
struct PodPlaces {
    SandboxId id;
    std::string instance;
    std::string agent_image;  ///< has the agent's folder at /hearth
    std::string server_key;   ///< the public half, 64 digits
    std::int64_t created_unix_ms = 0;
    Json owner = {};               ///< an ownerReferences entry; null: none
    std::string layer_claim = {};  ///< of the volume with its layer
    std::string layer = {};        ///< the layer's folder there; empty: it has none
};

/// The Pod's name: the id's digits, for a name has no underscore.
std::string podName(const SandboxId& id);

/// The Pod of one sandbox, hardened as the level "restricted" of Pod Security demands, and beyond:
/// no token, no service variables, a root that is read-only, files of the tenant on two volumes
/// with a size. What the spec's template adds takes the place of nothing in it.
Json podManifest(const SandboxSpec& spec, const PodPlaces& places);

}  // namespace hearth::pool::kubernetes
