#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/Json.h"
#include "pool/spec/FileLimits.h"

namespace hearth::pool::docker {

/// Labels of this server's containers; a sandbox's own labels have the prefix kOwnLabel.
inline constexpr const char* kInstanceLabel = "dev.hearth.instance";
inline constexpr const char* kSandboxLabel = "dev.hearth.sandbox";
inline constexpr const char* kCreatedLabel = "dev.hearth.created";
inline constexpr const char* kInsideLabel = "dev.hearth.inside";
inline constexpr const char* kOwnLabel = "dev.hearth.label.";

/// The user of agent and tenant, the same number as a tenant has in every runtime.
inline constexpr std::uint32_t kUid = 1000;

/// The objects on this machine that a sandbox's container refers to.
struct ContainerPlaces {
    SandboxId id;
    std::string instance;
    std::string image;        ///< its id in the Engine
    std::string inside;       ///< folder with the agent and the tenant filter: /.hearth
    std::string volume = {};  ///< a volume with that folder's content; empty: mount the folder
    std::string layer = {};   ///< the shared tree at kLayerPlace; empty: none
    std::string start;        ///< folder with the socket that passes the agent its listening socket
    std::int64_t created_unix_ms = 0;
    /// Paths where the image declares volumes. A sandbox gets empty read-only folders instead.
    std::vector<std::string> volumes;
    std::vector<std::string> image_env;  ///< the image's own; takeableEnv() filters it
    std::string image_workdir;
    std::uint64_t open_files = kMostOpenFiles;  ///< the most of one process
};

/// Returns the body of POST /containers/create: the only code that decides how a container is
/// confined. Pure.
Json containerConfig(const SandboxSpec& spec, const ContainerPlaces& places);
/// Returns the body of POST /containers/{name}/update: the limits that can change while it runs, in
/// the same words. Pure.
Json limitsUpdate(const SandboxLimits& limits);

}  // namespace hearth::pool::docker
