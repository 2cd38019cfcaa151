#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/Error.h"
#include "controller/spec/PoolSpec.h"
#include "pool/spec/SandboxSpec.h"

namespace hearth::controller {

/// The limits that a claim asks for, at most its pool's; absent: the pool's limit.
struct ClaimLimits {
    std::optional<std::uint32_t> milli_cpu = {};
    std::optional<std::uint64_t> memory_bytes = {};
    std::optional<std::uint32_t> pids = {};

    bool empty() const { return !milli_cpu && !memory_bytes && !pids; }
    bool within(const pool::SandboxLimits& limits) const;
    /// Returns `limits`, lowered to the requested ones.
    pool::SandboxLimits of(pool::SandboxLimits limits) const;
};

/// Returns why a named pool is too small: a field for each limit that is more than it has.
Error tooSmall(const std::string& pool, const pool::SandboxLimits& has, const ClaimLimits& asked);
/// Returns why all of these pools are too small. `pools` is not empty.
Error allTooSmall(const std::vector<PoolPtr>& pools, const ClaimLimits& asked);
/// Returns why a sandbox cannot have a limit.
Error usesMore(const pool::LimitInUse& in_use, const ClaimLimits& asked);

}  // namespace hearth::controller
