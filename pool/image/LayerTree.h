#pragma once

#include <cstdint>
#include <string>

namespace hearth::pool::image {

/// The limits of a layer.
struct LayerLimits {
    std::uint64_t bytes = 4ULL << 30U;  ///< all files together
    std::uint64_t entries = 400'000;
    std::size_t depth = 64;
    std::uint64_t disk_reserve = 256ULL << 20U;  ///< must stay free for others
};

/// Unpacks the tar archive in the file `tar` (read from its beginning) into the directory `root`,
/// which is empty and not yet visible to others. The archive comes from a sandbox and is not
/// trusted: only files, directories, and links that stay within the tree; each name once, relative,
/// without "..", UTF-8 without control characters. Entries belong to the caller, readable by all
/// and writable by the owner alone; of the modes only the executable bit is kept, and times are the
/// current time. Throws Error(InvalidArgument) for a refused archive, Error(DiskFull),
/// std::system_error. On failure the caller removes the tree. One thread per tree.
void unpackLayer(int tar, const std::string& root, const LayerLimits& limits);

}  // namespace hearth::pool::image
