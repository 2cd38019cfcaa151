#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace hearth::pool {

/// The place of a workspace's files: a loop-mounted ext4 image (hard size, cheap to end) or a tmpfs
/// (counts as the sandbox's memory).
enum class Storage { Disk, Memory };

/// The limits of one sandbox. All are hard, enforced by the kernel.
struct SandboxLimits {
    std::uint32_t milli_cpu = 1000;
    std::uint64_t memory_bytes = 512ULL << 20U;
    std::uint32_t pids = 128;
    std::uint64_t workspace_bytes = 256ULL << 20U;
    std::uint64_t tmp_bytes = 64ULL << 20U;

    bool operator==(const SandboxLimits&) const = default;
};

/// How many threads are useful at once: for the variables that numeric libraries read.
inline std::uint32_t wholeCpus(const SandboxLimits& limits) {
    return std::max(1U, (limits.milli_cpu + 999) / 1000);
}

/// A limit that cannot be set because the sandbox already uses more.
struct LimitInUse {
    enum class Of { Memory, Processes };
    Of of = Of::Memory;
    std::uint64_t used = 0;

    bool operator==(const LimitInUse&) const = default;
};

/// The path of a sandbox's layer, which it shares read-only with others that have the same. Some
/// libraries (dill) take a module for the program's own code unless site-packages is in its path.
inline constexpr const char* kLayerPlace = "/.hearth/layer/site-packages";

/// Everything a runtime needs to make one sandbox; independent of the kind of runtime.
struct SandboxSpec {
    std::string image;         ///< a name under `<data>/images`, or a reference in other runtimes
    std::string image_digest;  ///< the manifest digest to use ("sha256:…"); empty: the current one
    SandboxLimits limits;
    Storage storage = Storage::Disk;
    std::string layer;  ///< digest of the layer at kLayerPlace; empty: none
    /// uuids of its devices (GpuHost); in a cluster, the resource to request for each.
    std::vector<std::string> gpus;
    std::string runtime_class = {};  ///< of a cluster; empty: its default
    std::string pod_template = {};  ///< additions to its Pod, as JSON text; only a cluster reads it
    /// Stored with the sandbox and returned by list(), also after a restart: pool, generation.
    std::map<std::string, std::string> labels;
};

/// "sb_" and 32 hex digits. Every kernel object of a sandbox is named after instance and id.
using SandboxId = std::string;

/// A sandbox with parts that could not be removed.
struct Leftover {
    SandboxId id;
    std::string why;  ///< the reason, for an operator

    bool operator==(const Leftover&) const = default;
};

}  // namespace hearth::pool
