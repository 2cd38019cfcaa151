#pragma once

#include <sys/stat.h>

#include <string>
#include <string_view>

#include "base/Fd.h"
#include "pool/agent/program/core/JsonValue.h"

namespace hearth::agent {

/// The tree at `/workspace`, entered only through its own descriptor: no path leads out of it, by
/// "..", by a link or by a mount. Paths are those of workspacePath(). The owning thread makes the
/// calls with the tenant's identity. Failures are left in errno.
class WorkspaceFiles {
public:
    explicit WorkspaceFiles(const std::string& root);

    bool isOpen() const noexcept { return static_cast<bool>(root_); }
    int root() const noexcept { return root_.get(); }
    /// Opens beneath; links inside the workspace are followed unless `flags` has O_NOFOLLOW.
    Fd open(const std::string& path, int flags) const;
    /// Opens the directory that holds the last component; with `make`, makes it and its parents.
    Fd openParent(const std::string& path, bool make) const;
    /// Makes the directory and its parents. False with EEXIST if the last one was there.
    bool makeDirectories(const std::string& path) const;

private:
    Fd root_;
};

/// Returns the last component of a path.
std::string lastName(const std::string& path);
/// Returns `path, type, size, mode, modifiedAtMs` and, if wanted, `etag`.
JsonValue describe(std::string_view path, const struct stat& st, bool etag);
/// Returns the protocol's code for an errno.
const char* fileErrorCode(int error);

}  // namespace hearth::agent
