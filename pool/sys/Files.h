#pragma once

#include <dirent.h>
#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Small files and directories of our own, and the kernel's. Every call opens with O_CLOEXEC and
/// throws std::system_error with operation and path unless it says otherwise. Thread-safe.
namespace hearth::sys {

struct CloseDirectory {
    void operator()(DIR* directory) const noexcept { ::closedir(directory); }
};
/// An open directory stream; null where it could not be opened.
using Directory = std::unique_ptr<DIR, CloseDirectory>;

/// At most `limit` bytes of a file; nullopt if it does not exist (or its process is gone).
std::optional<std::string> readFile(const std::string& path, std::size_t limit = 1U << 20U);
/// Creates or replaces a file, never through a symbolic link.
void writeFile(const std::string& path, std::string_view content, mode_t mode);
/// One write to a file of /proc, /sys or a cgroup; the value is what counts, nothing is created.
void writeKernelFile(const std::string& path, std::string_view value);
/// mkdir with exactly this mode; false if it is there already (mode and owner stay as they are).
bool makeDirectory(const std::string& path, mode_t mode);
/// makeDirectory, then mode and owner are enforced. Refuses anything but a real directory.
void ensureDirectory(const std::string& path, mode_t mode, uid_t owner, gid_t group);
/// Names in a directory without "." and "..", sorted; empty if it does not exist.
std::vector<std::string> listDirectory(const std::string& path);
/// Removes a file; false if there was none.
bool removeFile(const std::string& path);
/// Removes a tree without following links or leaving its file system, with few descriptors
/// however deep it is. Nothing there is fine.
void removeTree(const std::string& path);
/// Closes every descriptor from `first` up except `keep`.
void closeFrom(int first, int keep = -1);

}  // namespace hearth::sys
