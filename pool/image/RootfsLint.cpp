#include "pool/image/RootfsLint.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <memory>
#include <utility>

#include "base/Error.h"
#include "base/Fd.h"
#include "base/Json.h"
#include "pool/sys/Files.h"

namespace hearth::pool::image {
namespace {

constexpr std::array kMountPoints{"dev", "proc", "sys", "tmp", "workspace", ".hearth"};
constexpr std::string_view kWhiteout = ".wh.";
constexpr int kMaxDepth = 128;  // one descriptor per level
constexpr std::size_t kMaxPath = 4095;
constexpr std::size_t kMaxEntries = 1'000'000;
constexpr std::size_t kShownPath = 200;

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
    std::string shown = toUtf8(path.substr(0, kShownPath));
    std::replace_if(
        shown.begin(), shown.end(),
        [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; }, '?');
    throw Error(ErrorCode::InvalidArgument, "the image cannot be used: " + shown + " " + why);
}

class Linter {
public:
    void directory(Fd fd, const std::string& path, int depth) {
        if (depth > kMaxDepth) refuse(path, "lies too deep");
        struct stat here {};
        if (::fstat(fd.get(), &here) != 0) throwErrno("stat", path);
        if (depth == 0) device_ = here.st_dev;
        const sys::Directory dir(::fdopendir(fd.get()));
        if (!dir) throwErrno("open", path);
        const int at = fd.release();
        while (const dirent* entry = ::readdir(dir.get())) {
            const std::string name = entry->d_name;
            if (name == "." || name == "..") continue;
            if (++entries_ > kMaxEntries) refuse(path + "/", "holds too many files");
            if (path.size() + 1 + name.size() > kMaxPath) refuse(path + "/", "has too long a path");
            checkName(name, path + "/" + name);
            one(at, name, path + "/" + name, depth);
        }
    }

    /// Called last, when every name of a file has been met.
    void checkLinks() const {
        for (const auto& [inode, links] : links_) {
            if (links.met != links.count) {
                refuse(links.path, "is a hard link to a file outside of the image");
            }
        }
    }

private:
    struct Links {
        std::string path;
        nlink_t count = 0;
        nlink_t met = 0;
    };

    static void checkName(const std::string& name, const std::string& path) {
        const bool control = std::any_of(name.begin(), name.end(), [](char c) {
            return static_cast<unsigned char>(c) < ' ' || c == 0x7f;
        });
        if (control) refuse(path, "has control characters in its name");
        if (!isUtf8(name)) refuse(path, "has a name that is not UTF-8");
        if (name.starts_with(kWhiteout)) refuse(path, "is a deletion that was not carried out");
    }

    void one(int at, const std::string& name, const std::string& path, int depth) {
        struct stat status {};
        if (::fstatat(at, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
            throwErrno("stat", path);
        }
        const bool mount_point =
            depth == 0 && std::count(kMountPoints.begin(), kMountPoints.end(), name) > 0;
        if (mount_point && S_ISLNK(status.st_mode)) {
            refuse(path, "is a link where sandboxes need a directory");
        }
        if (mount_point && !S_ISDIR(status.st_mode)) refuse(path, "must be a directory");
        if (status.st_dev != device_) refuse(path, "lies on another file system");
        switch (status.st_mode & S_IFMT) {
            case S_IFDIR: {
                Fd fd(::openat(at, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
                if (!fd) throwErrno("open", path);
                return directory(std::move(fd), path, depth + 1);
            }
            case S_IFLNK:
                return link(at, name, path, depth);
            case S_IFREG:
                if (status.st_nlink > 1) {
                    Links& links = links_[{status.st_dev, status.st_ino}];
                    if (links.met++ == 0) links.path = path, links.count = status.st_nlink;
                }
                return;
            default:
                break;
        }
        if (path.starts_with("/dev/")) return;
        const char* what = S_ISFIFO(status.st_mode)   ? "is a pipe"
                           : S_ISSOCK(status.st_mode) ? "is a socket"
                           : S_ISBLK(status.st_mode)  ? "is a block device"
                                                      : "is a character device";
        refuse(path, what);
    }

    /// `depth` belongs to the directory that contains the link.
    static void link(int at, const std::string& name, const std::string& path, int depth) {
        std::array<char, kMaxPath + 1> target{};
        const ssize_t n = ::readlinkat(at, name.c_str(), target.data(), target.size() - 1);
        if (n < 0) throwErrno("readlink", path);
        std::string_view rest(target.data(), static_cast<std::size_t>(n));
        if (rest.starts_with('/')) return;
        for (int level = depth; !rest.empty();) {
            const std::size_t slash = rest.find('/');
            const std::string_view part = rest.substr(0, slash);
            if (part == "..") {
                if (--level < 0) refuse(path, "is a link that climbs out of the image");
            } else if (!part.empty() && part != ".") {
                ++level;
            }
            rest.remove_prefix(slash == std::string_view::npos ? rest.size() : slash + 1);
        }
    }

    dev_t device_ = 0;
    std::size_t entries_ = 0;
    std::map<std::pair<dev_t, ino_t>, Links> links_;
};

}  // namespace

void lintRootfs(const std::string& root) {
    Fd fd(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!fd) throwErrno("open", root);
    Linter linter;
    linter.directory(std::move(fd), "", 0);
    linter.checkLinks();
}

}  // namespace hearth::pool::image
