#pragma once

#include <cstdint>

namespace hearth::pool::launcher {

/// The hard limit of open files of a sandbox's processes: kMostOpenFiles, but no more than this
/// process has, because a root without CAP_SYS_RESOURCE cannot raise it.
std::uint64_t mostOpenFiles();

}  // namespace hearth::pool::launcher
