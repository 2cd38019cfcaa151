#pragma once

#include <sys/types.h>

#include <climits>
#include <cstdint>

#include "pool/agent/program/core/Settings.h"

namespace hearth::agent {

/// Kills the processes that carry one Mark, and looks again until none is left.
class KillRounds {
public:
    explicit KillRounds(const Settings& settings) : settings_(settings) {}

    void begin(Mark mark, gid_t label);
    /// True while a look may still find a process.
    bool going() const noexcept { return next_ns_ > 0; }
    /// Returns when tick() must be called next; INT64_MAX for never.
    std::int64_t nextTickNs() const noexcept { return going() ? next_ns_ : INT64_MAX; }
    void tick(std::int64_t now_ns);

private:
    const Settings& settings_;
    Mark mark_{};
    gid_t label_ = 0;
    std::int64_t next_ns_ = 0;
    int left_ = 0;  ///< looks until the whole sandbox is killed
};

}  // namespace hearth::agent
