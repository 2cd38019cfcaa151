#pragma once

#include <linux/filter.h>

#include <vector>

namespace hearth::controller {

/// What the server's process never does, and what would serve whoever took it over: programs,
/// namespaces, mounts, other processes' memory, modules, keys, the rarer families of sockets. It is
/// a list of what is denied: libraries may use any other call tomorrow.
std::vector<sock_filter> serverFilter();

/// Puts serverFilter() on this process for good: EPERM for what it denies, the end for calls by
/// another architecture's door. Call with one thread, no new privileges and all programs run.
void enterServerFilter();

}  // namespace hearth::controller
