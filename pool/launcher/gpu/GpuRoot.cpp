#include "pool/launcher/gpu/GpuRoot.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <deque>
#include <filesystem>
#include <string_view>

#include "base/Error.h"
#include "base/Fd.h"
#include "pool/sys/Files.h"
#include "pool/sys/Namespaces.h"

namespace hearth::pool::launcher {
namespace {

constexpr int kMostLinks = 40;
constexpr const char* kScratch = "mode=0755,size=8m,nr_inodes=8192";

/// Makes places for mounts in the folder that will lie over an image's tree. The image's own links
/// are followed inside the image, as the runtime will do.
class MountPoints {
public:
    MountPoints(std::string tree, std::string over, std::uint32_t owner)
        : tree_(std::move(tree)), over_(std::move(over)), owner_(owner) {
        coverFolder("");
    }

    /// Makes a place for a mount, and all folders on the way to it.
    void make(const std::string& path, bool folder) {
        walk(path, folder ? Last::Folder : Last::File);
    }
    /// Opens the folders of `path` that the image has, so that hooks can write into them.
    void open(const std::string& path) { walk(path, Last::Any); }

private:
    enum class Last { File, Folder, Any };

    [[noreturn]] static void blocked(const std::string& path, const std::string& why) {
        throw Error(ErrorCode::Unsupported,
                    "the image has no place for the GPU's mount " + path + ": " + why);
    }

    static void prepend(std::deque<std::string>& parts, const std::string& path) {
        std::deque<std::string> more;
        for (const auto& part : std::filesystem::path(path).relative_path()) {
            if (!part.empty() && part != ".") more.push_back(part);
        }
        parts.insert(parts.begin(), more.begin(), more.end());
    }

    void walk(const std::string& path, Last last) {
        std::deque<std::string> parts;
        prepend(parts, path);
        std::string at;  // without links
        int links = 0;
        while (!parts.empty()) {
            const std::string part = parts.front();
            parts.pop_front();
            if (part == "..") {
                at.resize(at.empty() ? 0 : at.rfind('/'));
                continue;
            }
            std::string next = at;
            next.append("/").append(part);
            if (!ownPlaceOf(next).empty()) {  // through a link of the image
                if (last == Last::Any) return;
                blocked(path, "it leads into " + next);
            }
            struct stat status {};
            const bool there = ::lstat((tree_ + next).c_str(), &status) == 0;
            if (!there && errno != ENOENT) throwErrno("lstat", tree_ + next);
            if (there && S_ISLNK(status.st_mode)) {
                if (++links > kMostLinks) blocked(path, "too many symbolic links");
                const std::string target = std::filesystem::read_symlink(tree_ + next);
                if (target.starts_with('/')) at.clear();
                prepend(parts, target);
                continue;
            }
            const bool wants_folder = !parts.empty() || last != Last::File;
            if (last == Last::Any && (!there || !S_ISDIR(status.st_mode))) return;
            if (there && S_ISDIR(status.st_mode) != wants_folder) {
                blocked(path, next + (wants_folder ? " is no folder" : " is a folder"));
            }
            if (wants_folder) {
                coverFolder(next);
            } else if (!there) {
                makeFile(next);
            }
            at = next;
        }
    }

    /// Makes a folder over the image's: it shows that content, but has its own mode and owner.
    void coverFolder(const std::string& path) {
        struct stat status {};
        mode_t mode = 0755;
        if (::lstat((tree_ + path).c_str(), &status) == 0) mode = status.st_mode & 07777U;
        const std::string made = over_ + path;
        if (!path.empty() && !sys::makeDirectory(made, mode)) return;
        if (::chown(made.c_str(), owner_, owner_) != 0) throwErrno("chown", made);
        if (::chmod(made.c_str(), mode) != 0) throwErrno("chmod", made);
    }

    void makeFile(const std::string& path) const {
        const std::string made = over_ + path;
        const Fd fd(::open(made.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644));
        if (!fd) throwErrno("open", made);
        if (::fchown(fd.get(), owner_, owner_) != 0) throwErrno("chown", made);
    }

    std::string tree_;
    std::string over_;
    std::uint32_t owner_;
};

/// Opens the folders for hooks of NVIDIA's toolkit. They write the loader's cache, links and modes:
/// "--folder /usr/lib" or "--link libcuda.so.1::/usr/lib/libcuda.so".
void openFor(const cdi::CdiHook& hook, MountPoints& points) {
    for (const char* folder : {"/etc/ld.so.conf.d", "/run"}) points.open(folder);
    for (const std::string& argument : hook.args) {
        const std::size_t link = argument.find("::");
        const std::string path = link == std::string::npos ? argument : argument.substr(link + 2);
        if (path.starts_with('/')) points.open(path);
    }
}

std::string lastPart(const std::string& path) {
    return path.substr(path.rfind('/') + 1);
}

}  // namespace

void mountGpuRoot(const GpuParts& parts, const GpuRootPlaces& places) {
    sys::mount("root", places.scratch, "tmpfs", MS_NOSUID | MS_NODEV, kScratch);
    sys::makeDirectory(places.scratch + "/over", 0755);
    sys::makeDirectory(places.scratch + "/work", 0700);
    MountPoints points(places.tree, places.scratch + "/over", places.uid_first);
    for (const cdi::CdiMount& mount : parts.mounts) {
        points.make(mount.container_path, std::filesystem::is_directory(mount.host_path));
    }
    for (const cdi::CdiHook& hook : parts.hooks) openFor(hook, points);
    const std::string parent = places.tree.substr(0, places.tree.rfind('/'));
    const std::string scratch = lastPart(places.scratch);
    // Relative, because the tenant can read the options in its mountinfo.
    if (::chdir(parent.c_str()) != 0) throwErrno("chdir", parent);
    sys::mount("root", places.view, "overlay", 0,
               "lowerdir=" + lastPart(places.tree) + ",upperdir=" + scratch +
                   "/over,workdir=" + scratch + "/work");
    if (::chdir("/") != 0) throwErrno("chdir", "/");
}

void sealMount(const std::string& at, unsigned long flags) {
    sys::mount("", at, "", MS_REMOUNT | MS_RDONLY | flags, "");
}

}  // namespace hearth::pool::launcher
