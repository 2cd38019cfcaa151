#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "controller/journal/Database.h"
#include "metrics/Log.h"

namespace hearth::controller {

/// The bytes kept of each execution, counted by tenant, so that nobody fills the disk of all:
/// beyond the limit the tenant who keeps most loses its largest outputs, and when it has none left
/// its oldest records. Nobody loses an output because another's records are many. All of it works
/// within the caller's transaction, a few rows at a time: others wait for the same database. Not
/// thread-safe.
class KeptLedger {
public:
    KeptLedger(std::uint64_t most, metrics::Log& log) : most_(most), log_(log) {}

    /// Counts what an earlier version kept without counting. Once; what fails is logged.
    void catchUp(Database& database);
    /// An execution was written with so many bytes, documents included. Sheds where that is too
    /// much.
    void add(Database& database, const std::string& execution, const std::string& tenant,
             std::uint64_t bytes);
    /// Its row goes.
    static void drop(Database& database, const std::string& execution);
    /// The transaction was rolled back, or others have changed the table: it is counted anew.
    void forget() { total_.reset(); }

private:
    /// These two say false where there was nothing.
    bool shed(Database& database, const std::string& tenant);
    bool dropOldest(Database& database, const std::string& tenant);
    std::uint64_t total(Database& database);

    const std::uint64_t most_;
    metrics::Log& log_;
    std::optional<std::uint64_t> total_;
    /// Shedding goes on down to this: well below the limit, so that not every execution sheds.
    std::uint64_t goal_ = 0;
};

}  // namespace hearth::controller
