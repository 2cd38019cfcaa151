#include "pool/sys/Files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "base/Error.h"
#include "base/Fd.h"

namespace hearth::sys {
namespace {

Directory openDirectory(int at, const std::string& path) {
    Fd fd(::openat(at, path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!fd) return nullptr;
    Directory dir(::fdopendir(fd.get()));
    if (dir) static_cast<void>(fd.release());
    return dir;
}

bool isDots(const char* name) {
    return std::string_view(name) == "." || std::string_view(name) == "..";
}

/// Unlinks everything except directories; returns the first subdirectory that is not empty, or "".
std::string clearLevel(DIR* dir) {
    const int fd = ::dirfd(dir);
    while (const dirent* entry = ::readdir(dir)) {
        if (isDots(entry->d_name)) continue;
        if (::unlinkat(fd, entry->d_name, 0) == 0 || errno == ENOENT) continue;
        if (errno != EISDIR && errno != EPERM) throwErrno("unlink", entry->d_name);
        if (::unlinkat(fd, entry->d_name, AT_REMOVEDIR) == 0 || errno == ENOENT) continue;
        if (errno != ENOTEMPTY && errno != EEXIST) throwErrno("rmdir", entry->d_name);
        return entry->d_name;
    }
    return {};
}

}  // namespace

std::optional<std::string> readFile(const std::string& path, std::size_t limit) {
    const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd) {
        if (errno == ENOENT || errno == ENOTDIR || errno == ESRCH) return std::nullopt;
        throwErrno("open", path);
    }
    std::string text;
    char chunk[4096];
    while (text.size() < limit) {
        const ssize_t n = ::read(fd.get(), chunk, std::min(sizeof chunk, limit - text.size()));
        if (n == 0) break;
        if (n > 0) {
            text.append(chunk, static_cast<std::size_t>(n));
        } else if (errno == ESRCH || errno == ENODEV) {
            return std::nullopt;  // the process or cgroup of the file ended meanwhile
        } else if (errno != EINTR) {
            throwErrno("read", path);
        }
    }
    return text;
}

void writeFile(const std::string& path, std::string_view content, mode_t mode) {
    const Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, mode));
    if (!fd) throwErrno("open", path);
    if (::fchmod(fd.get(), mode) != 0) throwErrno("chmod", path);
    while (!content.empty()) {
        const ssize_t n = ::write(fd.get(), content.data(), content.size());
        if (n < 0 && errno != EINTR) throwErrno("write", path);
        if (n > 0) content.remove_prefix(static_cast<std::size_t>(n));
    }
}

void writeKernelFile(const std::string& path, std::string_view value) {
    const Fd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (!fd) throwErrno("open", path);
    if (::write(fd.get(), value.data(), value.size()) < 0) throwErrno("write", path);
}

bool makeDirectory(const std::string& path, mode_t mode) {
    if (::mkdir(path.c_str(), mode) != 0) {
        if (errno == EEXIST) return false;
        throwErrno("mkdir", path);
    }
    if (::chmod(path.c_str(), mode) != 0) throwErrno("chmod", path);  // mkdir obeys the umask
    return true;
}

void ensureDirectory(const std::string& path, mode_t mode, uid_t owner, gid_t group) {
    makeDirectory(path, mode);
    const Fd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!fd) throwErrno("open", path);
    if (::fchown(fd.get(), owner, group) != 0) throwErrno("chown", path);
    if (::fchmod(fd.get(), mode) != 0) throwErrno("chmod", path);
}

std::vector<std::string> listDirectory(const std::string& path) {
    std::vector<std::string> names;
    const Directory dir = openDirectory(AT_FDCWD, path);
    if (!dir) {
        if (errno == ENOENT) return names;
        throwErrno("open", path);
    }
    while (const dirent* entry = ::readdir(dir.get())) {
        if (!isDots(entry->d_name)) names.emplace_back(entry->d_name);
    }
    std::sort(names.begin(), names.end());
    return names;
}

bool removeFile(const std::string& path) {
    if (::unlink(path.c_str()) == 0) return true;
    if (errno == ENOENT || errno == ENOTDIR) return false;
    throwErrno("unlink", path);
}

void removeTree(const std::string& path) {
    if (::unlink(path.c_str()) == 0 || errno == ENOENT) return;
    Directory dir = openDirectory(AT_FDCWD, path);
    if (!dir) throwErrno("open", path);
    // One directory is open at a time: down into the first that is not empty, up through "..".
    std::vector<std::string> way;
    struct stat root {};
    if (::fstat(::dirfd(dir.get()), &root) != 0) throwErrno("stat", path);
    for (;;) {
        ::rewinddir(dir.get());
        const std::string deeper = clearLevel(dir.get());
        if (!deeper.empty()) {
            Directory next = openDirectory(::dirfd(dir.get()), deeper);
            if (!next) throwErrno("open", deeper);
            struct stat here {};
            if (::fstat(::dirfd(next.get()), &here) != 0) throwErrno("stat", deeper);
            if (here.st_dev != root.st_dev) throwErrno(EXDEV, "remove", deeper);
            dir = std::move(next);
            way.push_back(deeper);
            continue;
        }
        if (way.empty()) break;
        Directory up = openDirectory(::dirfd(dir.get()), "..");
        if (!up) throwErrno("open", "..");
        dir = std::move(up);
        if (::unlinkat(::dirfd(dir.get()), way.back().c_str(), AT_REMOVEDIR) != 0) {
            throwErrno("rmdir", way.back());
        }
        way.pop_back();
    }
    if (::rmdir(path.c_str()) != 0) throwErrno("rmdir", path);
}

void closeFrom(int first, int keep) {
    const auto close_range_of = [](unsigned from, unsigned to) {
        if (from <= to && ::close_range(from, to, 0) != 0) throwErrno("close_range");
    };
    if (keep < first) {
        close_range_of(static_cast<unsigned>(first), ~0U);
        return;
    }
    if (keep > first) close_range_of(static_cast<unsigned>(first), static_cast<unsigned>(keep) - 1);
    close_range_of(static_cast<unsigned>(keep) + 1, ~0U);
}

}  // namespace hearth::sys
