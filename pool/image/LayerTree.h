#pragma once

#include <cstdint>
#include <string>

namespace hearth::pool::image {

/// What a layer may be.
struct LayerLimits {
    std::uint64_t bytes = 4ULL << 30U;  ///< of all files together
    std::uint64_t entries = 400'000;
    std::size_t depth = 64;
    std::uint64_t disk_reserve = 256ULL << 20U;  ///< what must stay free for everybody else
};

/// Unpacks the tar archive that `tar` (a file, read from its beginning) holds into the directory
/// `root`, which is empty and seen by nobody else yet. The archive comes out of a sandbox and is
/// believed in nothing: files and directories only, and links that stay within the tree; each name
/// once, relative, without "..", UTF-8 without control characters. What is made belongs to the
/// caller, can be read by everybody and written by its owner alone; of modes only the executable
/// bit counts, and times are the moment's. Throws Error(InvalidArgument) for an archive that is
/// refused, Error(DiskFull), std::system_error. On failure the caller removes the tree. One thread
/// per tree.
void unpackLayer(int tar, const std::string& root, const LayerLimits& limits);

}  // namespace hearth::pool::image
