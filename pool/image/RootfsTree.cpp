#include "pool/image/RootfsTree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>

#include "base/Error.h"
#include "base/Fd.h"
#include "pool/sys/Files.h"

namespace hearth::pool::image {
namespace {

struct MountPoint {
    const char* name;
    mode_t mode;
};
// runc gives a tmpfs the mode of the directory below it, whatever the mount requests.
constexpr std::array<MountPoint, 6> kTreeMountPoints{{{"dev", 0755},
                                                      {"proc", 0755},
                                                      {"sys", 0755},
                                                      {"tmp", 01777},
                                                      {"workspace", 0700},
                                                      {".hearth", 0755}}};
constexpr int kTreeDepth = 256;  // one descriptor per level
constexpr std::size_t kTreeEntries = 2'000'000;

[[noreturn]] void refuseTree(const std::string& path, const std::string& why) {
    throw Error(ErrorCode::InvalidArgument, "the image cannot be used: " + path + " " + why);
}

class Hardener {
public:
    void directory(Fd fd, const std::string& path, int depth) {
        if (depth > kTreeDepth) refuseTree(path, "lies too deep");
        own(fd.get(), path, 0555);
        const sys::Directory dir(::fdopendir(fd.get()));
        if (!dir) throwErrno("open", path);
        const int at = fd.release();
        while (const dirent* entry = ::readdir(dir.get())) {
            const std::string name = entry->d_name;
            if (name == "." || name == "..") continue;
            if (++entries_ > kTreeEntries) refuseTree(path, "holds too many files");
            one(at, name, path + "/" + name, depth);
        }
    }

private:
    void one(int at, const std::string& name, const std::string& path, int depth) {
        struct stat status {};
        if (::fstatat(at, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
            throwErrno("stat", path);
        if (S_ISLNK(status.st_mode)) {
            if (::fchownat(at, name.c_str(), 0, 0, AT_SYMLINK_NOFOLLOW) != 0)
                throwErrno("chown", path);
            return;
        }
        if (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) {
            refuseTree(path, "is neither a file, a directory nor a link");
        }
        Fd fd(::openat(at, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
        if (!fd) throwErrno("open", path);
        if (S_ISDIR(status.st_mode)) {
            directory(std::move(fd), path, depth + 1);
        } else {
            own(fd.get(), path, 0444);
        }
    }

    static void own(int fd, const std::string& path, mode_t readable) {
        struct stat status {};
        if (::fstat(fd, &status) != 0) throwErrno("stat", path);
        if (::fchown(fd, 0, 0) != 0) throwErrno("chown", path);
        mode_t mode = (status.st_mode & 0755U) | readable;
        if ((status.st_mode & 0111U) != 0) mode |= 0111U;
        if (::fchmod(fd, mode) != 0) throwErrno("chmod", path);
        if (::fremovexattr(fd, "security.capability") != 0 && errno != ENODATA &&
            errno != EOPNOTSUPP) {
            throwErrno("removexattr", path);
        }
    }

    std::size_t entries_ = 0;
};

void prepareMountPoint(const std::string& root, const char* name) {
    const std::string path = root + "/" + name;
    struct stat status {};
    if (::lstat(path.c_str(), &status) == 0) {
        if (!S_ISDIR(status.st_mode)) refuseTree(std::string("/") + name, "must be a directory");
        // The image's own entries there (especially device nodes) would be covered anyway.
        sys::removeTree(path);
    } else if (errno != ENOENT) {
        throwErrno("stat", path);
    }
    sys::makeDirectory(path, 0755);
}

}  // namespace

bool hasMountPoints(const std::string& root) {
    return std::all_of(std::begin(kTreeMountPoints), std::end(kTreeMountPoints),
                       [&](const MountPoint& point) {
                           struct stat status {};
                           const std::string path = root + "/" + point.name;
                           return ::lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
                       });
}

void hardenRootfs(const std::string& root) {
    for (const MountPoint& point : kTreeMountPoints) prepareMountPoint(root, point.name);
    Fd fd(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!fd) throwErrno("open", root);
    Hardener().directory(std::move(fd), "", 0);
    for (const MountPoint& point : kTreeMountPoints) {
        sys::ensureDirectory(root + "/" + point.name, point.mode, 0, 0);
    }
}

}  // namespace hearth::pool::image
