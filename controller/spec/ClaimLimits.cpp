#include "controller/spec/ClaimLimits.h"

#include <algorithm>

#include "base/Units.h"

namespace hearth::controller {
namespace {

constexpr const char* kCpu = "/limits/cpu";
constexpr const char* kMemory = "/limits/memoryBytes";
constexpr const char* kPids = "/limits/pids";
constexpr const char* kHint =
    "the limits of a claim cannot exceed those of its pool; GET /v1/pools shows all pools";

std::string inWords(const pool::SandboxLimits& limits) {
    return formatMilliCpu(limits.milli_cpu) + " cpu, " + formatBytes(limits.memory_bytes) +
           " memory and " + std::to_string(limits.pids) + " processes";
}

/// Adds a field for each limit that is more than `has`; `what` begins the reason.
void addFields(Error& error, const pool::SandboxLimits& has, const ClaimLimits& asked,
               const std::string& what) {
    if (asked.milli_cpu && *asked.milli_cpu > has.milli_cpu) {
        error.field(kCpu, what + formatMilliCpu(has.milli_cpu));
    }
    if (asked.memory_bytes && *asked.memory_bytes > has.memory_bytes) {
        error.field(kMemory, what + formatBytes(has.memory_bytes));
    }
    if (asked.pids && *asked.pids > has.pids) error.field(kPids, what + std::to_string(has.pids));
}

/// Rounds up, so that a value just above a limit is not shown as that limit.
std::string megabytes(std::uint64_t bytes) {
    return std::to_string((bytes + (1U << 20U) - 1) >> 20U) + " MiB";
}

}  // namespace

bool ClaimLimits::within(const pool::SandboxLimits& limits) const {
    return milli_cpu.value_or(0) <= limits.milli_cpu &&
           memory_bytes.value_or(0) <= limits.memory_bytes && pids.value_or(0) <= limits.pids;
}

pool::SandboxLimits ClaimLimits::of(pool::SandboxLimits limits) const {
    limits.milli_cpu = std::min(limits.milli_cpu, milli_cpu.value_or(limits.milli_cpu));
    limits.memory_bytes = std::min(limits.memory_bytes, memory_bytes.value_or(limits.memory_bytes));
    limits.pids = std::min(limits.pids, pids.value_or(limits.pids));
    return limits;
}

Error tooSmall(const std::string& pool, const pool::SandboxLimits& has, const ClaimLimits& asked) {
    Error error(ErrorCode::InvalidSpec, "pool " + pool + " has " + inWords(has));
    addFields(error, has, asked, "is more than the pool has: ");
    return std::move(error.hint(kHint));
}

Error allTooSmall(const std::vector<PoolPtr>& pools, const ClaimLimits& asked) {
    pool::SandboxLimits most = pools.front()->spec.limits;
    for (const PoolPtr& pool : pools) {
        const pool::SandboxLimits& limits = pool->spec.limits;
        most.milli_cpu = std::max(most.milli_cpu, limits.milli_cpu);
        most.memory_bytes = std::max(most.memory_bytes, limits.memory_bytes);
        most.pids = std::max(most.pids, limits.pids);
    }
    const bool alone = pools.size() == 1;
    Error error(ErrorCode::InvalidSpec, alone ? "the only pool that fits otherwise, " +
                                                    pools.front()->name + ", has " +
                                                    inWords(pools.front()->spec.limits)
                                              : "no pool that fits otherwise has so much");
    addFields(error, most, asked,
              alone ? "is more than the pool has: " : "is more than any pool has: at most ");
    if (error.fields().empty()) error.field("/limits", "no pool has all of these at once");
    return std::move(error.hint(kHint));
}

Error usesMore(const pool::LimitInUse& in_use, const ClaimLimits& asked) {
    if (in_use.of == pool::LimitInUse::Of::Processes) {
        const std::string used = std::to_string(in_use.used);
        Error error(ErrorCode::InvalidSpec,
                    "a sandbox of the pool has " + used + " processes before anything runs in it");
        error.field(asked.pids ? kPids : "/limits", "must be above " + used);
        return std::move(error.hint("ask for more, or use a pool that keeps fewer interpreters"));
    }
    const std::string used = megabytes(in_use.used);
    Error error(ErrorCode::InvalidSpec,
                "a sandbox of the pool uses " + used + " of memory before anything runs in it");
    error.field(asked.memory_bytes ? kMemory : "/limits", "must be above " + used);
    return std::move(error.hint("ask for more, or use a pool that preloads less"));
}

}  // namespace hearth::controller
