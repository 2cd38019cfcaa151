#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "base/Fd.h"
#include "pool/sys/Cgroups.h"

namespace hearth::sys {

/// The most memory that a group has held since the last look. The kernel begins a new count at
/// each: in version 2 (since Linux 6.12) for one descriptor of memory.peak, in version 1 in the
/// counter of memory with swap, which nothing else here reads and which equals that of memory,
/// because sandboxes have no swap. So the peak since the group's start, which programs and users
/// see, stays.
class MemoryPeak {
public:
    MemoryPeak(const Cgroups& cgroups, const std::string& path);

    /// Gives `owner` the right to begin counts. Throws std::system_error. Does nothing if the
    /// kernel cannot.
    void handTo(uid_t owner) const;
    /// Returns the peak since the last call (the first: since the group's start), and begins a new
    /// count; nullopt if the kernel cannot, the group is gone, or it may not.
    std::optional<std::uint64_t> take() noexcept;

private:
    std::string file_;  ///< empty: none
    Fd open_;
};

}  // namespace hearth::sys
