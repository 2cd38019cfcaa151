#include "api/mcp/stdio/LocalFiles.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>

#include "base/Error.h"
#include "base/Ids.h"

namespace hearth::mcp {
namespace {

[[noreturn]] void refuse(int error, const std::string& path) {
    switch (error) {
        case EXDEV:
        case ELOOP:
            throw Error(ErrorCode::Forbidden, path + " is outside the shared local directory")
                .hint("Use a path beneath it, or start hearth mcp with another --root.");
        case ENOENT:
        case ENOTDIR:
            throw Error(ErrorCode::NotFound, "no such local file: " + path);
        case EACCES:
        case EPERM:
            throw Error(ErrorCode::Forbidden, "no permission for the local file " + path);
        case EISDIR:
            throw Error(ErrorCode::InvalidArgument, path + " is a local directory");
        case ENOSPC:
        case EDQUOT:
            throw Error(ErrorCode::DiskFull, "the local disk is full");
        default:
            throwErrno(error, "local file", path);
    }
}

int openBeneath(int directory, const std::string& path, int flags) {
    open_how how{};
    how.flags = static_cast<std::uint64_t>(flags) | O_CLOEXEC;
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
    for (int tries = 0;; ++tries) {
        const auto fd =
            static_cast<int>(::syscall(SYS_openat2, directory, path.c_str(), &how, sizeof(how)));
        // EAGAIN: a rename raced with the resolution of "..".
        if (fd >= 0 || (errno != EINTR && errno != EAGAIN) || tries > 100) return fd;
    }
}

void writeAll(int fd, std::string_view bytes, const std::string& path) {
    while (!bytes.empty()) {
        const ssize_t n = ::write(fd, bytes.data(), bytes.size());
        if (n < 0 && errno != EINTR) refuse(errno, path);
        if (n > 0) bytes.remove_prefix(static_cast<std::size_t>(n));
    }
}

/// Removes a temporary file unless it has been renamed.
class TempFile {
public:
    TempFile(int directory, std::string name) : directory_(directory), name_(std::move(name)) {}
    TempFile(const TempFile&) = delete;
    TempFile& operator=(const TempFile&) = delete;
    ~TempFile() {
        if (!renamed_) ::unlinkat(directory_, name_.c_str(), 0);
    }
    void rename(const std::string& to, const std::string& shown) {
        if (::renameat(directory_, name_.c_str(), directory_, to.c_str()) != 0) {
            refuse(errno, shown);
        }
        renamed_ = true;
    }

private:
    int directory_;
    std::string name_;
    bool renamed_ = false;
};

}  // namespace

LocalFiles::LocalFiles(const std::string& root) {
    const std::unique_ptr<char, decltype(&std::free)> real(::realpath(root.c_str(), nullptr),
                                                           &std::free);
    if (real) root_fd_ = Fd(::open(real.get(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!root_fd_) throw Error(ErrorCode::NotFound, "not a directory: " + root);
    root_ = real.get();
    if (root_ == "/") {
        throw Error(ErrorCode::InvalidArgument, "--root " + root + " would share every local file")
            .hint("give a directory that holds only what the model may read and write");
    }
}

std::string LocalFiles::relative(const std::string& path) const {
    if (path.empty() || path.find('\0') != std::string::npos) {
        throw Error(ErrorCode::InvalidArgument, "the local path is empty or holds NUL");
    }
    if (!path.starts_with('/')) return path;
    if (path == root_) return ".";
    if (!path.starts_with(root_ + "/")) refuse(EXDEV, path);
    const std::size_t from = path.find_first_not_of('/', root_.size());
    return from == std::string::npos ? "." : path.substr(from);
}

Fd LocalFiles::beneath(const std::string& path, int flags) const {
    return Fd(openBeneath(root_fd_.get(), path, flags));
}

LocalFiles::Opened LocalFiles::open(const std::string& path) const {
    // O_NONBLOCK: open() must not block on a FIFO.
    Opened out{beneath(relative(path), O_RDONLY | O_NONBLOCK), 0};
    if (!out.fd) refuse(errno, path);
    struct stat info {};
    if (::fstat(out.fd.get(), &info) != 0) refuse(errno, path);
    if (S_ISDIR(info.st_mode)) {
        throw Error(ErrorCode::InvalidArgument, path + " is a local directory")
            .hint("Give its files one by one, or pack it first.");
    }
    if (!S_ISREG(info.st_mode)) {
        throw Error(ErrorCode::InvalidArgument, path + " is no regular file");
    }
    out.size = static_cast<std::uint64_t>(info.st_size);
    return out;
}

Fd LocalFiles::makeParents(const std::string& directory) const {
    Fd here = beneath(".", O_PATH | O_DIRECTORY);
    std::size_t at = 0;
    while (here && at < directory.size()) {
        const std::size_t slash = std::min(directory.find('/', at), directory.size());
        const std::string upto = directory.substr(0, slash);
        const std::string name = directory.substr(at, slash - at);
        at = slash + 1;
        if (name.empty()) continue;
        Fd next = beneath(upto, O_PATH | O_DIRECTORY);
        if (!next && errno == ENOENT && name != "..") {
            if (::mkdirat(here.get(), name.c_str(), 0777) != 0 && errno != EEXIST) {
                refuse(errno, upto);
            }
            next = beneath(upto, O_PATH | O_DIRECTORY);
        }
        if (!next) refuse(errno, upto);
        here = std::move(next);
    }
    if (!here) refuse(errno, directory);
    return here;
}

std::pair<std::string, std::uint64_t> LocalFiles::save(
    const std::string& path, const std::string& default_name,
    const std::function<void(const Append&)>& fill) const {
    std::string target = relative(path);
    if (target.ends_with('/') || beneath(target, O_PATH | O_DIRECTORY)) {
        target += "/" + default_name;
    }
    const std::size_t slash = target.rfind('/');
    const std::string name = slash == std::string::npos ? target : target.substr(slash + 1);
    if (name.empty() || name == "." || name == "..") {
        throw Error(ErrorCode::InvalidArgument, path + " names no file");
    }
    const Fd directory = makeParents(slash == std::string::npos ? "" : target.substr(0, slash));
    const std::string temporary = "." + newId("hearth_");
    const Fd file(::openat(directory.get(), temporary.c_str(),
                           O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
    if (!file) refuse(errno, path);
    TempFile guard(directory.get(), temporary);
    std::uint64_t size = 0;
    fill([&](std::string_view bytes) {
        writeAll(file.get(), bytes, path);
        size += bytes.size();
    });
    guard.rename(name, path);
    return {target, size};
}

std::vector<std::string> LocalFiles::tree(const std::string& directory) const {
    std::vector<std::string> files;
    addTree(relative(directory), "", 0, files);
    return files;
}

void LocalFiles::addTree(const std::string& path, const std::string& below, int depth,
                         std::vector<std::string>& files) const {
    constexpr int deepest = 64;
    Fd fd = beneath(path, O_RDONLY | O_DIRECTORY);
    if (!fd) refuse(errno, path);
    const std::unique_ptr<DIR, int (*)(DIR*)> open(::fdopendir(fd.get()), &::closedir);
    if (!open) throwErrno("fdopendir", path);
    static_cast<void>(fd.release());  // closedir() closes it
    while (const dirent* entry = ::readdir(open.get())) {
        const std::string name = entry->d_name;
        if (name == "." || name == "..") continue;
        struct stat info {};
        if (::fstatat(::dirfd(open.get()), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
        if (S_ISDIR(info.st_mode) && depth < deepest) {
            addTree(path + "/" + name, below + name + "/", depth + 1, files);
        }
        if (S_ISREG(info.st_mode)) files.push_back(below + name);
        if (files.size() > kMostFiles) {
            throw Error(ErrorCode::InvalidArgument,
                        path + " has more than " + std::to_string(kMostFiles) + " files")
                .hint("Pack it first, or leave out what is not needed.");
        }
    }
}

}  // namespace hearth::mcp
