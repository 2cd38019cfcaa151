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

/// The additions of a sandbox with GPUs: CDI edits, checked against this machine and the rules.
struct GpuParts {
    std::vector<GpuNode> nodes;
    std::vector<cdi::CdiMount> mounts;  ///< sources exist; sorted, none inside another
    std::vector<std::string> env;       ///< for its executions
    std::vector<cdi::CdiHook> hooks;

    bool operator==(const GpuParts&) const = default;
};

/// Returns the sandbox's own place that contains `path`, as "/workspace"; empty if there is none.
std::string_view ownPlaceOf(std::string_view path);

/// The longest run of a hook.
inline constexpr unsigned kHookSeconds = 15;

/// Looks up the fields that the edits leave open. Throws Error(Unsupported) that names the
/// impossible one and the reason: a device that is no character device or not the file's, a mount
/// of nothing or over a place of Hearth's, a variable of Hearth's, a hook that others than root
/// could change. `additionalGids` are left out: nodes belong to the tenant, and no other group of
/// the host means anything in a sandbox's user namespace.
GpuParts gpuParts(const cdi::CdiEdits& edits);

}  // namespace hearth::pool::launcher
