#pragma once

#include <sys/types.h>

#include <vector>

#include "pool/agent/program/Settings.h"

namespace hearth::agent {

/// Which processes belong to an execution. With a label (a supplementary group that tenants cannot
/// drop) that is every descendant for ever; without, the session and the tree below the first one.
struct ProcessGroup {
    gid_t label = 0;  ///< 0: none
    pid_t leader = 0;
};

/// The living processes (no zombies) of one execution, read from /proc.
std::vector<pid_t> livingProcesses(const Settings& settings, const ProcessGroup& group);

/// How many living processes the tenant has.
int countTenantProcesses(const Settings& settings);

/// Kills what is found, again and again while new ones appear, without waiting. Returns how many
/// the last look still found: 0 means that none is left.
int killProcesses(const Settings& settings, const ProcessGroup& group);

}  // namespace hearth::agent
