#include "pool/image/Unpack.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>

#include "base/Error.h"
#include "base/Fd.h"
#include "base/Units.h"
#include "pool/image/ProgramOutput.h"
#include "pool/image/Reference.h"
#include "pool/sys/Files.h"
#include "pool/sys/Namespaces.h"
#include "pool/sys/Supervise.h"

namespace hearth::pool::image {
namespace {

// Above every leased range and every login; each unpacking process uses its own uid.
constexpr uid_t kFirstUid = 3'000'000'000;
constexpr std::uint64_t kFewestInodes = 1000;
constexpr rlim_t kMostThreads = 512;
constexpr std::size_t kLongestReason = 300;

[[noreturn]] void refuseUnpacking(const std::string& why) {
    throw Error(ErrorCode::InvalidArgument, "the image cannot be unpacked: " + why);
}

[[noreturn]] void diskFull() {
    throw Error(ErrorCode::DiskFull, "the disk of the data directory is full")
        .hint("make room, or remove images with `hearth image remove`; nothing half done is left");
}

/// Measures the written bytes; the tree changes meanwhile and is hostile.
class Measure {
public:
    Measure(const UnpackLimits& limits) : limits_(limits) {}

    void directory(int at, const char* name, int depth) {
        if (depth > limits_.depth) refuseUnpacking("its folders are nested too deep");
        Fd fd(::openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
        if (!fd) return;  // removed meanwhile
        const sys::Directory dir(::fdopendir(fd.get()));
        if (!dir) return;
        const int here = fd.release();
        while (const dirent* entry = ::readdir(dir.get())) {
            const std::string_view each = entry->d_name;
            if (each == "." || each == "..") continue;
            if (++entries_ > limits_.entries) {
                refuseUnpacking("it has more than " + std::to_string(limits_.entries) + " files");
            }
            struct stat status {};
            if (::fstatat(here, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
            constexpr std::uint64_t kBlock = 512;
            bytes_ += static_cast<std::uint64_t>(status.st_blocks) * kBlock /
                      std::max<std::uint64_t>(status.st_nlink, 1);
            if (bytes_ > limits_.bytes) {
                refuseUnpacking("it is larger than " + formatBytes(limits_.bytes));
            }
            if (S_ISDIR(status.st_mode)) directory(here, entry->d_name, depth + 1);
        }
    }
    std::uint64_t bytes() const { return bytes_; }

private:
    const UnpackLimits& limits_;
    std::uint64_t bytes_ = 0;
    std::uint64_t entries_ = 0;
};

std::uint64_t measure(const std::string& tree, const UnpackLimits& limits) {
    Measure measure(limits);
    measure.directory(AT_FDCWD, tree.c_str(), 0);
    return measure.bytes();
}

void show(const std::string& from, const std::string& to, unsigned long flags) {
    sys::makeDirectory(to, 0755);
    sys::mount(from, to, "", MS_BIND, "");
    sys::mount("", to, "", MS_BIND | MS_REMOUNT | MS_NOSUID | MS_NODEV | flags, "");
}

/// Runs in the child, still as root: makes a minimal root with nothing in it to damage.
void enterWorld(const std::string& world, const std::string& layout, const std::string& tree,
                const UnpackLimits& limits) {
    sys::enterPrivateMounts();
    if (::unshare(CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS) != 0) throwErrno("unshare");
    sys::mount("tmpfs", world, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=1m");
    for (const char* name : {"usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32"}) {
        const std::string here = std::string("/") + name;
        struct stat status {};
        if (::lstat(here.c_str(), &status) != 0) continue;
        if (S_ISLNK(status.st_mode)) {
            char target[256];
            const ssize_t n = ::readlink(here.c_str(), target, sizeof target - 1);
            if (n <= 0) throwErrno("readlink", here);
            target[n] = '\0';
            if (::symlink(target, (world + here).c_str()) != 0) throwErrno("symlink", here);
        } else {
            show(here, world + here, MS_RDONLY);
        }
    }
    show(layout, world + "/layout", MS_RDONLY | MS_NOEXEC);
    show(tree, world + "/tree", MS_NOEXEC);
    sys::mount("", world, "", MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV, "mode=755,size=1m");
    if (::chdir(world.c_str()) != 0) throwErrno("chdir", world);
    if (::syscall(SYS_pivot_root, ".", ".") != 0) throwErrno("pivot_root", world);
    if (::umount2(".", MNT_DETACH) != 0 || ::chdir("/") != 0) throwErrno("umount", "old root");
    const auto limit = [](auto what, rlim_t most) {
        const rlimit value{most, most};
        if (::setrlimit(what, &value) != 0) throwErrno("setrlimit");
    };
    limit(RLIMIT_FSIZE, limits.file_bytes);
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_NOFILE, 1024);
    limit(RLIMIT_NPROC, kMostThreads);
    ::umask(022);
}

/// The last line with content, without a terminal's control characters.
std::string lastLine(const std::string& said) {
    std::size_t end = said.size();
    while (end > 0) {
        const std::size_t begin = said.rfind('\n', end - 1);
        const std::size_t from = begin == std::string::npos ? 0 : begin + 1;
        std::string line;
        for (const char c : said.substr(from, end - from)) {
            if (c >= ' ' && c < 0x7f) line += c;
        }
        const std::size_t word = line.find_first_not_of(' ');
        if (word != std::string::npos) return line.substr(word, kLongestReason);
        if (begin == std::string::npos) break;
        end = begin;
    }
    return {};
}

[[noreturn]] void explain(const sys::Outcome& outcome, const UnpackLimits& limits) {
    if (outcome.late) {
        throw Error(ErrorCode::Deadline, "the image was not unpacked within " +
                                             std::to_string(limits.time.count()) + " s");
    }
    if (outcome.status == 127) {
        throw Error(ErrorCode::Unsupported, "images cannot be unpacked: umoci is missing")
            .hint("apt-get install umoci");
    }
    if (holdsOneOf(outcome.said, {"no space left on device"})) diskFull();
    if (holdsOneOf(outcome.said, {"file too large"}) || outcome.status == 128 + SIGXFSZ) {
        refuseUnpacking("it has a file larger than " + formatBytes(limits.file_bytes));
    }
    const std::string reason = lastLine(outcome.said);
    refuseUnpacking(reason.empty() ? "umoci ended with status " + std::to_string(outcome.status)
                                   : reason);
}

}  // namespace

void requireFree(const std::string& path, std::uint64_t reserve) {
    struct statvfs disk {};
    if (::statvfs(path.c_str(), &disk) != 0) throwErrno("statvfs", path);
    const bool inodes = disk.f_files == 0 || disk.f_favail > kFewestInodes;
    if (disk.f_bavail * disk.f_frsize < reserve || !inodes) diskFull();
}

void unpackLayers(const std::string& path, const Layout& layout, const std::string& tree,
                  const UnpackLimits& limits, const Unpacked& told) {
    if (layout.layers > limits.layers) {
        refuseUnpacking("it has more than " + std::to_string(limits.layers) + " layers");
    }
    if (!isTag(layout.tag)) refuseUnpacking("its manifest has no tag");
    requireFree(path, limits.disk_reserve);
    const std::string world = tree + ".world";
    const uid_t uid = kFirstUid + static_cast<uid_t>(::getpid());
    sys::makeDirectory(world, 0700);
    sys::ensureDirectory(tree, 0755, uid, uid);
    sys::Supervised umoci;
    umoci.argv = {"umoci", "raw", "unpack", "--rootless", "--image", "/layout:" + layout.tag,
                  "/tree"};
    umoci.limit = limits.time;
    umoci.enter = [&] { enterWorld(world, path, tree, limits); };
    umoci.root_is = uid;
    auto next = std::chrono::steady_clock::now();
    umoci.watch = [&] {
        requireFree(tree, limits.disk_reserve);
        const auto begin = std::chrono::steady_clock::now();
        if (begin < next) return;
        const std::uint64_t bytes = measure(tree, limits);
        if (told) told(bytes);
        // Measuring must cost only a fraction of the work itself.
        const auto end = std::chrono::steady_clock::now();
        next = end + std::max<std::chrono::steady_clock::duration>(std::chrono::milliseconds(300),
                                                                   4 * (end - begin));
    };
    const sys::Outcome outcome = sys::supervise(umoci);
    if (outcome.status != 0 || outcome.late) explain(outcome, limits);
    const std::uint64_t bytes = measure(tree, limits);
    if (told) told(bytes);
    if (::rmdir(world.c_str()) != 0) throwErrno("rmdir", world);
}

}  // namespace hearth::pool::image
