#pragma once

#include <cstdint>
#include <string>

#include "pool/agent/program/core/Settings.h"

namespace hearth::agent {

/// If our own oom_score_adj can be lowered, so can a tenant's: the sandbox's maker lacks
/// CAP_SYS_RESOURCE, without which the kernel keeps no floor. Then this process lowers its score as
/// far as it may, and true is returned; `own` is its score in either case. For PID 1.
bool sinkOomScore(std::string& own);

/// Raises the oom_score_adj of every process below it but our own, so that the kernel's
/// out-of-memory killer takes a tenant before the agent. Returns how many it raised. `proc` is
/// /proc.
int raiseOomScores(const Settings& settings, const std::string& proc);

/// Does that once a second while `on`, where the kernel keeps no floor. On the loop's thread. Not
/// at once: the answer to a claim should not compete with it for the processor.
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
