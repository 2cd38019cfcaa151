#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/Fd.h"

namespace hearth::mcp {

/// The user's own files beneath one directory, which a client may read and write through the stdio
/// bridge. Nothing outside is reached by "..", an absolute path or a symlink: the kernel resolves
/// every path beneath the root (openat2, RESOLVE_BENEATH).
///
/// Throws Error: Forbidden (outside the root), NotFound, InvalidArgument, DiskFull.
class LocalFiles {
public:
    /// Opens the root. Error(NotFound) if it is not a directory, Error(InvalidArgument) for "/".
    explicit LocalFiles(const std::string& root);

    struct Opened {
        Fd fd;
        std::uint64_t size = 0;
    };
    /// Opens a regular file for reading.
    Opened open(const std::string& path) const;

    /// Returns the regular files in a directory and below it, as paths from that directory; links
    /// are not followed. Error(InvalidArgument) past kMostFiles.
    std::vector<std::string> tree(const std::string& directory) const;
    static constexpr std::size_t kMostFiles = 20'000;

    using Append = std::function<void(std::string_view)>;
    /// Writes a file whole or not at all: `fill` gets a function that appends. Makes parent
    /// directories. For a path that is a directory or ends in '/', the file is `default_name` in
    /// it. Returns the path written, relative to the root, and its size.
    std::pair<std::string, std::uint64_t> save(
        const std::string& path, const std::string& default_name,
        const std::function<void(const Append&)>& fill) const;

    const std::string& root() const { return root_; }

private:
    std::string relative(const std::string& path) const;
    Fd beneath(const std::string& path, int flags) const;
    /// `below`: the part of `path` after the requested directory, "" or ending in a slash.
    void addTree(const std::string& path, const std::string& below, int depth,
                 std::vector<std::string>& files) const;
    Fd makeParents(const std::string& directory) const;

    std::string root_;  ///< absolute, no slash at its end
    Fd root_fd_;
};

}  // namespace hearth::mcp
