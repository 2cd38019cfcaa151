#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "pool/sys/Cgroups.h"

namespace hearth::sys {

/// The limits of a group.
struct GroupLimits {
    std::uint64_t milli_cpu = 0;
    std::uint64_t memory_bytes = 0;
    std::uint64_t processes = 0;
};

/// A limit that cannot be set because the group uses more already.
struct LimitInUse {
    enum class Of { Memory, Processes };
    Of of = Of::Memory;
    std::uint64_t used = 0;
};

/// Lowers the limits of a live group; equal ones are left alone. Present limits are the bound:
/// Error(Forbidden) without any write if one would be raised. Error(NotFound) if the group is gone.
/// If it returns a value, the group may have some of the limits and, in version 2, have lost a
/// process to the kernel: end it. Blocks while the kernel reclaims memory.
std::optional<LimitInUse> lowerLimits(const Cgroups& cgroups, const std::string& path,
                                      const GroupLimits& wanted);

/// Limits the kernel memory of the group's sockets. Version 1 counts it apart from memory, with
/// only the machine's own limit, which all share; version 2 counts it as memory.
void boundSocketMemory(const Cgroups& cgroups, const std::string& path, std::uint64_t bytes);

/// Returns the group's memory that the kernel could not reclaim; nullopt if the group is gone.
std::optional<std::uint64_t> memoryNeeded(const Cgroups& cgroups, const std::string& path);

}  // namespace hearth::sys
