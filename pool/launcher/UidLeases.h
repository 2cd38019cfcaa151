#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pool/spec/SandboxSpec.h"

namespace hearth::pool::launcher {

/// Ranges of host uids, each leased to one sandbox of one instance at a time. The leases of all
/// instances of the machine are in one directory: a symbolic link `<index>` whose text is
/// "<instance>/<sandbox>", because a link gets its content atomically and only once. Beside it
/// `<instance>.<sandbox>` names the index, which saves a search among thousands; it is made before
/// the lease and removed after it. Safe between processes.
class UidLeases {
public:
    UidLeases(std::string directory, std::string instance, std::uint32_t base, std::uint32_t ranges)
        : directory_(std::move(directory)),
          instance_(std::move(instance)),
          base_(base),
          ranges_(ranges) {}

    /// Leases a free range to the sandbox, or finds the one it has; returns its first uid. Throws
    /// Error(QuotaExceeded) when all are taken.
    std::uint32_t lease(const SandboxId& id) const;
    /// Gives back the sandbox's range. Call only when no process of it is left.
    void release(const SandboxId& id) const;
    /// True if the sandbox holds a range, or was about to.
    bool holds(const SandboxId& id) const;
    /// Returns the sandboxes of this instance that hold a range. Reads the whole directory.
    std::vector<SandboxId> holders() const;
    /// Returns how often this object has read the whole directory.
    std::size_t scans() const { return scans_; }

private:
    std::vector<std::pair<std::uint32_t, SandboxId>> held() const;
    std::string leasePath(std::uint32_t index) const;
    std::string indexPath(const SandboxId& id) const;
    void note(const SandboxId& id, std::uint32_t index) const;
    /// Returns the range that the sandbox holds.
    std::optional<std::uint32_t> rangeOf(const SandboxId& id) const;

    std::string directory_;
    std::string instance_;
    std::uint32_t base_;
    std::uint32_t ranges_;
    mutable std::size_t scans_ = 0;
};

}  // namespace hearth::pool::launcher
