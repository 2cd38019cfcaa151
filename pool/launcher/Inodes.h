#pragma once

#include <algorithm>
#include <cstdint>

namespace hearth::pool::launcher {

/// Returns how many files a file system of this many bytes may hold.
inline std::uint64_t inodesFor(std::uint64_t bytes) {
    constexpr std::uint64_t kBytesPerInode = 16'384;
    constexpr std::uint64_t kFewest = 1024;
    return std::max(bytes / kBytesPerInode, kFewest);
}

}  // namespace hearth::pool::launcher
