#pragma once

#include <string>

namespace hearth::sys {

/// Kills a stopped process (SIGSTOP) that holds `lock`, a file whose text is its pid: nobody would
/// continue it. True if it was killed. Kills only a process that has this same file open.
bool killStoppedHolder(const std::string& lock);

}  // namespace hearth::sys
