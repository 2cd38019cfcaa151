#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "pool/sys/Cgroups.h"

namespace hearth::sys {

/// A group's share of a busy processor among the groups of its parent.
enum class CpuWeight {
    Ordinary,  ///< 128 of the 1024 that a process has
    First,     ///< 32 times as much: a process that mostly sleeps runs almost as soon as it wakes
};

/// The ordinary weight in units of `cpu.shares`.
inline constexpr std::uint64_t kOrdinaryCpuShares = 128;

/// The file that sets one group's weight: `cpu.shares` or `cpu.weight`. A value, no descriptor.
class CpuWeightFile {
public:
    CpuWeightFile(const Cgroups& cgroups, const std::string& path);

    /// Gives the group the ordinary weight, and `owner` the right to change it. Throws
    /// std::system_error. Does nothing without a cpu controller.
    void handTo(uid_t owner) const;
    /// True if the group has that weight now, or is gone, or there are no weights; false if the
    /// change is not allowed. Takes a few microseconds.
    bool set(CpuWeight weight) const noexcept;

private:
    std::optional<std::string> file_;
    CgroupVersion version_;
};

}  // namespace hearth::sys
