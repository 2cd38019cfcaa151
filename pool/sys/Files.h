#pragma once

#include <dirent.h>
#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Small files and directories of Hearth and of the kernel. Every call opens with O_CLOEXEC and
/// throws std::system_error with operation and path unless it says otherwise. Thread-safe.
namespace hearth::sys {

struct CloseDirectory {
    void operator()(DIR* directory) const noexcept { ::closedir(directory); }
};
/// An open directory stream; null if it could not be opened.
using Directory = std::unique_ptr<DIR, CloseDirectory>;

/// Reads at most `limit` bytes of a file; nullopt if it does not exist (or its process is gone).
std::optional<std::string> readFile(const std::string& path, std::size_t limit = 1U << 20U);
/// Creates or replaces a file, never through a symbolic link.
void writeFile(const std::string& path, std::string_view content, mode_t mode);
/// Writes once to a file of /proc, /sys or a cgroup; creates nothing.
void writeKernelFile(const std::string& path, std::string_view value);
/// Calls mkdir with exactly this mode; false if it is there already (mode and owner are kept).
bool makeDirectory(const std::string& path, mode_t mode);
/// Calls makeDirectory, then enforces mode and owner. Refuses anything but a real directory.
void ensureDirectory(const std::string& path, mode_t mode, uid_t owner, gid_t group);
/// Returns the names in a directory except "." and "..", sorted; empty if it does not exist.
std::vector<std::string> listDirectory(const std::string& path);
/// Removes a file; false if there was none.
bool removeFile(const std::string& path);
/// Removes a tree without following links or leaving its file system, with few descriptors however
/// deep it is. A missing tree is fine.
void removeTree(const std::string& path);
/// Closes every descriptor from `first` up except `keep`.
void closeFrom(int first, int keep = -1);

}  // namespace hearth::sys
