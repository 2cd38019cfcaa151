#include "pool/agent/program/files/WorkspaceFiles.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace hearth::agent {

namespace {

constexpr int kPlainDirectory = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

/// For kernels without openat2: follows no link anywhere on the way.
Fd openStepwise(int root, const std::string& path, int flags) {
    Fd at(openat(root, ".", kPlainDirectory));
    std::string_view rest = path;
    for (std::size_t slash = 0; at && (slash = rest.find('/')) != std::string_view::npos;) {
        at = Fd(openat(at.get(), std::string(rest.substr(0, slash)).c_str(), kPlainDirectory));
        rest.remove_prefix(slash + 1);
    }
    if (!at) return Fd();
    const std::string last(rest.empty() ? "." : rest);
    return Fd(openat(at.get(), last.c_str(), flags | O_NOFOLLOW | O_CLOEXEC));
}

}  // namespace

WorkspaceFiles::WorkspaceFiles(const std::string& root)
    : root_(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)) {}

Fd WorkspaceFiles::open(const std::string& path, int flags) const {
    open_how how{};
    how.flags = static_cast<std::uint64_t>(flags) | O_CLOEXEC;
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV;
    const char* name = path.empty() ? "." : path.c_str();
    for (int attempt = 0; attempt < 8; ++attempt) {
        const long fd = syscall(SYS_openat2, root_.get(), name, &how, sizeof(how));
        if (fd >= 0) return Fd(static_cast<int>(fd));
        if (errno == ENOSYS) return openStepwise(root_.get(), path, flags);
        if (errno != EAGAIN && errno != EINTR) break;  // EAGAIN: a concurrent rename
    }
    return Fd();
}

Fd WorkspaceFiles::openParent(const std::string& path, bool make) const {
    const std::size_t slash = path.rfind('/');
    const std::string parent = slash == std::string::npos ? "" : path.substr(0, slash);
    if (make && !makeDirectories(parent) && errno != EEXIST) return Fd();
    return open(parent, O_RDONLY | O_DIRECTORY);
}

bool WorkspaceFiles::makeDirectories(const std::string& path) const {
    bool made = false;
    Fd at = open("", O_RDONLY | O_DIRECTORY);
    for (std::size_t end = 0; at && end != std::string::npos && !path.empty();) {
        const std::size_t begin = end == 0 ? 0 : end + 1;
        end = path.find('/', begin);
        const std::string name = path.substr(begin, end == std::string::npos ? end : end - begin);
        made = mkdirat(at.get(), name.c_str(), 0755) == 0;
        if (!made && errno != EEXIST) return false;
        at = open(path.substr(0, end), O_RDONLY | O_DIRECTORY);
    }
    if (!at) return false;
    if (!made) errno = EEXIST;
    return made;
}

std::string lastName(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    return slash == std::string::npos ? path : path.substr(slash + 1);
}

JsonValue describe(std::string_view path, const struct stat& st, bool etag) {
    const char* type = S_ISREG(st.st_mode)   ? "file"
                       : S_ISDIR(st.st_mode) ? "directory"
                       : S_ISLNK(st.st_mode) ? "symlink"
                                             : "other";
    JsonValue v = JsonValue::object();
    v.set("path", path).set("type", type);
    v.set("size", static_cast<std::int64_t>(S_ISDIR(st.st_mode) ? 0 : st.st_size));
    v.set("mode", static_cast<int>(st.st_mode & 07777U));
    v.set("modifiedAtMs",
          static_cast<std::int64_t>(st.st_mtim.tv_sec) * 1'000 + st.st_mtim.tv_nsec / 1'000'000);
    if (etag) {
        char text[80];
        std::snprintf(text, sizeof(text), "%lx-%lx-%lx.%lx", static_cast<unsigned long>(st.st_ino),
                      static_cast<unsigned long>(st.st_size),
                      static_cast<unsigned long>(st.st_ctim.tv_sec),
                      static_cast<unsigned long>(st.st_ctim.tv_nsec));
        v.set("etag", text);
    }
    return v;
}

const char* fileErrorCode(int error) {
    switch (error) {
        case ENOENT:
            return "NOT_FOUND";
        case ENOTDIR:
            return "NOT_A_DIRECTORY";
        case EISDIR:
            return "IS_A_DIRECTORY";
        case EEXIST:
        case ENOTEMPTY:
            return "EXISTS";
        case ENOSPC:
        case EDQUOT:
        case EFBIG:
            return "NO_SPACE";
        case EACCES:
        case EPERM:
        case EROFS:
            return "DENIED";
        case ENXIO:  // a FIFO or socket
        case ENODEV:
            return "NOT_A_FILE";
        case ELOOP:
        case EXDEV:
        case EINVAL:
        case ENAMETOOLONG:
            return "BAD_PATH";
        default:
            return "INTERNAL";
    }
}

}  // namespace hearth::agent
