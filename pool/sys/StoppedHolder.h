#pragma once

#include <string>

namespace hearth::sys {

/// Kills a stopped process (SIGSTOP) that holds `lock`, a file whose text is its pid: nobody would
/// continue it. True if it was killed. Only a process that has that very file open is killed.
bool killStoppedHolder(const std::string& lock);

}  // namespace hearth::sys
