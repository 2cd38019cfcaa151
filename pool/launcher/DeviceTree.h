#pragma once

#include <string>

namespace hearth::pool::launcher {

/// Mounts a /dev of one sandbox at `at`, in the caller's mount namespace: nodes, links and the
/// folders that are mounted over. Only root can write to it.
void mountDevices(const std::string& at);

}  // namespace hearth::pool::launcher
