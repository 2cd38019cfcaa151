#pragma once

#include <linux/filter.h>

#include <vector>

namespace hearth::controller {

/// Returns a filter that denies system calls that the server never makes but an attacker inside it
/// would: programs, namespaces, mounts, other processes' memory, modules, keys, rare socket
/// families. A deny list, because newer libraries may use any other call.
std::vector<sock_filter> serverFilter();

/// Applies serverFilter() to this process for good: denied calls get EPERM, a call of another
/// architecture kills the process. Call with one thread and no_new_privs, after all programs ran.
void enterServerFilter();

}  // namespace hearth::controller
