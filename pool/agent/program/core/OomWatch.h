#pragma once

#include <cstdint>
#include <string>

#include "pool/agent/program/core/Settings.h"

namespace hearth::agent {

/// Where our own oom_score_adj can go down, a tenant's can, too: whoever made the sandbox lacks
/// CAP_SYS_RESOURCE, by which the kernel would keep the score as a floor. Then this process goes as
/// low as it may, and true is returned; `own` is its score in either case. For PID 1.
bool sinkOomScore(std::string& own);

/// Raises the oom_score_adj of every process below it but our own, so that the kernel's
/// out-of-memory killer takes a tenant before the agent. Returns how many it raised. `proc` is
/// /proc.
int raiseOomScores(const Settings& settings, const std::string& proc);

/// Does that once a second while `on`, where the kernel keeps no floor. On the loop's thread.
class OomWatch {
public:
    explicit OomWatch(const Settings& settings) : settings_(settings) {}

    std::int64_t nextTickNs(bool on) const noexcept;
    void tick(std::int64_t now_ns, bool on);

private:
    const Settings& settings_;
    std::int64_t next_ns_ = 0;
};

}  // namespace hearth::agent
