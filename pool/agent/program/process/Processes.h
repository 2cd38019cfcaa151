#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <vector>

#include "pool/agent/program/core/Settings.h"

namespace hearth::agent {

/// The living processes (no zombies) of one execution, read from /proc: every descendant for ever,
/// by the number that its processes carry as their Mark.
std::vector<pid_t> livingProcesses(const Settings& settings, Mark mark, gid_t label);

/// A process's usage as reported by one that a tenant may control: bounded, so that later
/// arithmetic cannot overflow.
rusage toldUsage(long long user_us, long long system_us, long long peak_kib);

/// How many living processes the tenant has.
int countTenantProcesses(const Settings& settings);

/// Kills what is found, again and again while new ones appear, without waiting. Returns how many
/// the last look still found: 0 means that none is left.
int killProcesses(const Settings& settings, Mark mark, gid_t label);

}  // namespace hearth::agent
