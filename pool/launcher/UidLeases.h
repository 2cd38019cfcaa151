#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "pool/spec/SandboxSpec.h"

namespace hearth::pool::launcher {

/// Ranges of host uids, each leased to one sandbox of one instance at a time. The leases of all
/// instances of the machine lie in one directory: a symbolic link `<index>` whose text is
/// "<instance>/<sandbox>", because a link comes into being with its content and only once.
/// Safe between processes.
class UidLeases {
public:
    UidLeases(std::string directory, std::string instance, std::uint32_t base, std::uint32_t ranges)
        : directory_(std::move(directory)),
          instance_(std::move(instance)),
          base_(base),
          ranges_(ranges) {}

    /// Leases a free range to the sandbox, or finds the one it has; gives its first uid. Throws
    /// Error(QuotaExceeded) when all are taken.
    std::uint32_t lease(const SandboxId& id) const;
    /// Gives back what the sandbox has. Call only when no process of it is left.
    void release(const SandboxId& id) const;
    /// Sandboxes of this instance that hold a range.
    std::vector<SandboxId> holders() const;

private:
    std::vector<std::pair<std::uint32_t, SandboxId>> held() const;

    std::string directory_;
    std::string instance_;
    std::uint32_t base_;
    std::uint32_t ranges_;
};

}  // namespace hearth::pool::launcher
