#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <vector>

#include "pool/agent/program/core/Settings.h"

namespace hearth::agent {

/// Finds the living processes (no zombies) of one execution in /proc, by the number that they carry
/// as their Mark: this finds every descendant for ever.
std::vector<pid_t> livingProcesses(const Settings& settings, Mark mark, gid_t label);

/// Returns a process's usage as reported by one that a tenant may control: bounded, so that later
/// arithmetic cannot overflow.
rusage toldUsage(long long user_us, long long system_us, long long peak_kib);

/// Returns the number of living processes of the tenant.
int countTenantProcesses(const Settings& settings);

/// Kills the processes of one execution, without waiting for their ends. Returns how many may be
/// left: 0 means none. As PID 1 that is proven, against processes that fork faster than a look: if
/// others appear, it stops the whole sandbox for about a millisecond.
int killProcesses(const Settings& settings, Mark mark, gid_t label);

}  // namespace hearth::agent
