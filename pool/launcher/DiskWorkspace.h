#pragma once

#include <cstdint>
#include <string>

namespace hearth::pool::launcher {

/// Makes a sparse ext4 image of `bytes` at `image`, mounts it at `target` in this process's mount
/// namespace and unlinks the image: the end of the last mount frees file system, loop device and
/// disk. The root directory belongs to `owner` alone. Throws Error(DiskFull) if the disk cannot
/// hold it.
void mountDiskWorkspace(const std::string& image, const std::string& target, std::uint64_t bytes,
                        std::uint32_t owner);

/// Frees the remains of `image`: the file, and loop devices over it. Throws while a file in it is
/// open: until then its sandbox is not gone and counts.
void removeDiskWorkspace(const std::string& image);

}  // namespace hearth::pool::launcher
