#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/Clock.h"
#include "controller/contract/Principal.h"

namespace hearth::controller {

/// The sums of what workspaces have used.
struct UsageSums {
    std::uint64_t claims = 0;
    std::uint64_t sandbox_ms = 0;  ///< from the bind to the end, paused or not
    std::uint64_t cpu_us = 0;
    std::uint64_t gpu_ms = 0;           ///< devices times time
    std::uint64_t memory_kib_secs = 0;  ///< KiB in use times seconds
    std::uint64_t egress_bytes = 0;     ///< both ways

    /// A sum that would pass INT64_MAX stays there.
    UsageSums& operator+=(const UsageSums& more);
};

/// A query about usage. One hour is the finest unit that is kept.
struct UsageQuery {
    bool by_tenant = true;
    bool by_pool = false;
    WallTime since{};
    std::optional<WallTime> until;  ///< if it begins an hour, that hour is excluded; none: now
};

/// One row of the answer.
struct UsageRow {
    std::string tenant;  ///< empty: all
    std::string pool;    ///< empty: all
    UsageSums sums;
};

/// Usage by tenant, in whole hours of UTC, for 92 days. Users see their own tenant's, operators
/// all. Thread-safe.
class UsageReports {
public:
    /// The number of hours that are kept.
    static constexpr std::int64_t kKeptHours = 92LL * 24;

    virtual ~UsageReports() = default;
    /// Sorted by tenant and pool.
    virtual std::vector<UsageRow> report(const Principal& who, const UsageQuery& query) = 0;
};

}  // namespace hearth::controller
