#pragma once

#include <sys/stat.h>

#include <string>
#include <string_view>

#include "base/Fd.h"
#include "pool/agent/program/core/JsonValue.h"

namespace hearth::agent {

/// The tree at `/workspace`, entered only through its own descriptor: no path leads out of it, by
/// "..", by a link or by a mount. Paths are those of workspacePath(). Calls are made with the
/// tenant's identity by the thread that owns it. Failures are left in errno.
class WorkspaceFiles {
public:
    explicit WorkspaceFiles(const std::string& root);

    bool isOpen() const noexcept { return static_cast<bool>(root_); }
    int root() const noexcept { return root_.get(); }
    /// Opens beneath; links inside the workspace are followed unless `flags` has O_NOFOLLOW.
    Fd open(const std::string& path, int flags) const;
    /// The directory that holds the last component, made with its parents if wanted.
    Fd openParent(const std::string& path, bool make) const;
    /// Makes the directory and those above it. False with EEXIST if the last one was there.
    bool makeDirectories(const std::string& path) const;

private:
    Fd root_;
};

/// The last component of a path.
std::string lastName(const std::string& path);
/// `path, type, size, mode, modifiedAtMs` and, if wanted, `etag`.
JsonValue describe(std::string_view path, const struct stat& st, bool etag);
/// The protocol's code for an errno.
const char* fileErrorCode(int error);

}  // namespace hearth::agent
