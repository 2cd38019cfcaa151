#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "controller/journal/Database.h"
#include "metrics/Log.h"

namespace hearth::controller {

/// The bytes kept of each execution, counted by tenant, so no tenant can fill the disk for all.
/// Beyond the limit, the tenant that keeps most loses its largest outputs, and after these its
/// oldest records. No tenant loses an output because another has many records. Works within the
/// caller's transaction, a few rows at a time, because others wait for the same database. Not
/// thread-safe.
class KeptLedger {
public:
    KeptLedger(std::uint64_t most, metrics::Log& log) : most_(most), log_(log) {}

    /// Records that an execution was written with this many bytes, documents included. Sheds data
    /// beyond the limit.
    void add(Database& database, const std::string& execution, const std::string& tenant,
             std::uint64_t bytes);
    /// Called when the execution's row is removed.
    static void drop(Database& database, const std::string& execution);
    /// Makes the table be counted again: after a rollback, or after changes by others.
    void forget() { total_.reset(); }

private:
    /// These two return false if there was nothing to remove.
    bool shed(Database& database, const std::string& tenant);
    bool dropOldest(Database& database, const std::string& tenant);
    std::uint64_t total(Database& database);

    const std::uint64_t most_;
    metrics::Log& log_;
    std::optional<std::uint64_t> total_;
    /// Shedding continues down to this size, well below the limit, so not every execution sheds.
    std::uint64_t goal_ = 0;
};

}  // namespace hearth::controller
