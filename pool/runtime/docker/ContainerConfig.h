#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/Json.h"
#include "pool/spec/SandboxSpec.h"

namespace hearth::pool::docker {

/// Labels of our containers; a sandbox's own ones come behind kOwnLabel.
inline constexpr const char* kInstanceLabel = "dev.hearth.instance";
inline constexpr const char* kSandboxLabel = "dev.hearth.sandbox";
inline constexpr const char* kCreatedLabel = "dev.hearth.created";
inline constexpr const char* kInsideLabel = "dev.hearth.inside";
inline constexpr const char* kOwnLabel = "dev.hearth.label.";

/// Agent and tenant are this user, the same number as a tenant has in every runtime.
inline constexpr std::uint32_t kUid = 1000;

/// The paths on this machine that a sandbox's container refers to.
struct ContainerPlaces {
    SandboxId id;
    std::string instance;
    std::string image;        ///< the Engine's id of it
    std::string inside;       ///< folder with the agent and the tenant filter: /.hearth
    std::string volume = {};  ///< a volume with that folder's content; empty: it is mounted itself
    std::string layer = {};   ///< the shared tree at kLayerPlace; empty: it has none
    std::string start;        ///< folder with the socket that gives the agent its listening one
    std::int64_t created_unix_ms = 0;
    /// Where the image wants volumes. A sandbox gets none: empty read-only folders stand there.
    std::vector<std::string> volumes;
    std::vector<std::string> image_env;  ///< as the image has it; takeableEnv() decides
    std::string image_workdir;
};

/// The body of POST /containers/create: the one place that decides how a container is shut in.
/// Pure.
Json containerConfig(const SandboxSpec& spec, const ContainerPlaces& places);
/// The body of POST /containers/{name}/update: what of the limits can change while it runs, in the
/// same words. Pure.
Json limitsUpdate(const SandboxLimits& limits);

}  // namespace hearth::pool::docker
