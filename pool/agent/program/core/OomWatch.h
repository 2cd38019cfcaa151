#pragma once

#include <cstdint>
#include <string>

#include "pool/agent/program/core/Settings.h"

namespace hearth::agent {

/// If this process can lower its own oom_score_adj, a tenant can do the same: the sandbox's maker
/// lacks CAP_SYS_RESOURCE, without which the kernel keeps no floor. Then it lowers its score as far
/// as it may and returns true; `own` is its score in either case. For PID 1.
bool sinkOomScore(std::string& own);

/// Raises the oom_score_adj of every process in `proc` (/proc) that is below the tenants' least,
/// except the agent's, so that the kernel's out-of-memory killer takes a tenant before the agent.
/// Returns how many scores it has raised.
int raiseOomScores(const Settings& settings, const std::string& proc);

/// Calls raiseOomScores() once a second while `on`, if the kernel keeps no floor. On the loop's
/// thread. Not at once: the answer to a claim should not compete with it for the processor.
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
