#pragma once

#include <cstdint>
#include <string>

#include "base/Json.h"
#include "pool/launcher/gpu/GpuParts.h"
#include "pool/spec/FileLimits.h"
#include "pool/spec/SandboxSpec.h"

namespace hearth::pool::launcher {

/// The paths on this machine that a sandbox's bundle refers to.
struct BundlePlaces {
    SandboxId id;
    std::string rootfs;            ///< unpacked image, shared, never written to
    std::string inside;            ///< directory with the agent and the tenant filter: /.hearth
    std::string devices;           ///< tree that becomes /dev, with nodes of this sandbox alone
    std::string workspace;         ///< mounted file system of a Disk workspace; unused with Memory
    std::string cgroups_path;      ///< "/hearth-<instance>/<name>"
    std::uint32_t uid_first = 0;   ///< first host uid and gid of the sandbox's range
    std::string layer = {};        ///< the sandbox's view of its layer: kLayerPlace; empty: none
    std::string image_facts = {};  ///< encodeFacts() of the image, for the agent; may be empty
    GpuParts gpu = {};             ///< its nodes, mounts and so on for its GPUs
    /// The most memory that it may lock: a GPU's driver pins the memory it shares with the device.
    std::uint64_t locked_bytes = 65'536;
    std::uint64_t open_files = kMostOpenFiles;  ///< the most of one process
};

/// Builds the OCI config of a sandbox: the one place that decides its confinement. Pure.
Json bundleConfig(const SandboxSpec& spec, const BundlePlaces& places);

}  // namespace hearth::pool::launcher
