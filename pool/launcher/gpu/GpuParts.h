#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "pool/gpu/cdi/CdiEdits.h"

namespace hearth::pool::launcher {

/// A character device in a sandbox's own /dev.
struct GpuNode {
    std::string name;  ///< below /dev, as "nvidia-caps/nvidia-cap1"
    unsigned major = 0;
    unsigned minor = 0;
    mode_t mode = 0;
    std::string access;  ///< "r", "w" or "rw"; making nodes is never allowed

    bool operator==(const GpuNode&) const = default;
};

/// A sandbox gets these with its GPUs: CDI edits, checked against this machine and our rules.
struct GpuParts {
    std::vector<GpuNode> nodes;
    std::vector<cdi::CdiMount>
        mounts;                    ///< of files and folders that exist, sorted, none in another
    std::vector<std::string> env;  ///< of its executions
    std::vector<cdi::CdiHook> hooks;

    bool operator==(const GpuParts&) const = default;
};

/// The sandbox's own place that `path` is or lies in, as "/workspace"; empty if in none.
std::string_view ownPlaceOf(std::string_view path);

/// The longest that a hook may run.
inline constexpr unsigned kHookSeconds = 15;

/// Looks up what the edits leave open. Throws Error(Unsupported) that says which of them cannot be
/// done and why: a device that is no character device or not the one that the file says, a mount of
/// nothing or over a place of ours, a variable of ours, a hook that others than root could change.
/// `additionalGids` are left out: nodes belong to the tenant, and no other group of the host means
/// anything in a sandbox's user namespace.
GpuParts gpuParts(const cdi::CdiEdits& edits);

}  // namespace hearth::pool::launcher
