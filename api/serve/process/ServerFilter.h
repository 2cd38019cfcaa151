#pragma once

#include <linux/filter.h>

#include <vector>

namespace hearth::controller {

/// Denies system calls that the server never makes but an attacker inside it would: programs,
/// namespaces, mounts, other processes' memory, modules, keys, rare socket families. A deny list,
/// because libraries may use any other call tomorrow.
std::vector<sock_filter> serverFilter();

/// Puts serverFilter() on this process for good: EPERM for what it denies, the end for calls by
/// another architecture's door. Call with one thread, no new privileges and all programs run.
void enterServerFilter();

}  // namespace hearth::controller
