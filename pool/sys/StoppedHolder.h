#pragma once

#include <string>

namespace hearth::sys {

/// Kills a process that was stopped (SIGSTOP) and holds `lock`, a file whose text is its pid:
/// nobody would let it go on. True if it was killed. Only a process that has that very file open is
/// touched.
bool killStoppedHolder(const std::string& lock);

}  // namespace hearth::sys
