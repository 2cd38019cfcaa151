#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>

#include "pool/sys/Cgroups.h"

namespace hearth::sys {

/// Stops all processes of a group at once and lets them continue, by `freezer.state` (v1) or
/// `cgroup.freeze` (v2); Linux: admin-guide/cgroup-v1/freezer-subsystem, cgroup-v2. A value, no
/// descriptor.
class Freezer {
public:
    Freezer(const Cgroups& cgroups, const std::string& path);

    /// True if the machine has a freezer at all.
    static bool exists(const Cgroups& cgroups);

    /// Gives `owner` the right to freeze and thaw the group. Throws std::system_error. Does nothing
    /// without a freezer.
    void handTo(uid_t owner) const;
    /// True once every process is stopped; false if `limit` passed first or it is not allowed, and
    /// then nothing is stopped. Usually takes a few milliseconds at most.
    bool freeze(std::chrono::milliseconds limit) const noexcept;
    /// False if it is not allowed. A group that has gone or was not frozen is fine. Takes some
    /// microseconds.
    bool thaw() const noexcept;
    /// True if it was asked to be frozen, and is frozen or is about to be.
    bool frozen() const noexcept;

private:
    bool ask(const char* word) const noexcept;
    bool stopped() const noexcept;

    std::optional<std::string> folder_;
    CgroupVersion version_;
};

}  // namespace hearth::sys
