#pragma once

#include <algorithm>
#include <cstdint>

#include "pool/spec/SandboxSpec.h"

namespace hearth::pool {

/// How many files one process may have open: programs that need more than the usual limit raise it.
inline constexpr std::uint64_t kOpenFiles = 1'024;
inline constexpr std::uint64_t kMostOpenFiles = 65'536;

/// The folder for what the agent makes for its tenants, as their code: a tmpfs of its own.
inline constexpr const char* kRunPlace = "/.hearth/run";

/// The size of /dev/shm: Docker's 64 MiB, but no more than /tmp and a quarter of the memory. In a
/// cluster the node decides.
inline std::uint64_t shmBytes(const SandboxLimits& limits) {
    return std::min({std::uint64_t{64} << 20U, limits.tmp_bytes, limits.memory_bytes / 4});
}

/// The size of kRunPlace: enough for what all executions at once have compiled.
inline std::uint64_t runBytes(const SandboxLimits& limits) {
    return std::min(std::uint64_t{64} << 20U, limits.memory_bytes / 8);
}

}  // namespace hearth::pool
