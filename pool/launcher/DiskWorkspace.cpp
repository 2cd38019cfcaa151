#include "pool/launcher/DiskWorkspace.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <stdexcept>

#include "base/Error.h"
#include "base/Fd.h"
#include "pool/launcher/Inodes.h"
#include "pool/sys/Files.h"
#include "pool/sys/LoopDevice.h"
#include "pool/sys/Namespaces.h"
#include "pool/sys/Process.h"

namespace hearth::pool::launcher {
namespace {

// ext4 can have at most 2^32.
constexpr std::uint64_t kMostInodes = 1ULL << 30U;
/// How long a disk may stay after the last process that could use it; usually some milliseconds.
constexpr auto kDiskEnd = std::chrono::milliseconds(500);
constexpr int kDiskLook = 2;  // milliseconds

void makeFileSystem(const std::string& image, std::uint64_t bytes, std::uint32_t owner) {
    const std::string id = std::to_string(owner);
    const std::uint64_t inodes = std::min(inodesFor(bytes), kMostInodes);
    // No journal: a workspace never outlives a crash. The sparse file reads as zeros, so inode
    // tables need no writing.
    const int status = sys::run({{"mkfs.ext4", "-q", "-F", "-m", "0", "-b", "4096", "-N",
                                  std::to_string(inodes), "-O", "^has_journal,^resize_inode", "-E",
                                  "root_owner=" + id + ":" + id +
                                      ",assume_storage_prezeroed=1,lazy_itable_init=1,nodiscard",
                                  image},
                                 -1,
                                 ""});
    if (status == 127) {
        throw Error(ErrorCode::Unsupported, "mkfs.ext4 is missing")
            .hint("apt-get install e2fsprogs");
    }
    if (status != 0) throwErrno(EIO, "mkfs.ext4", "status " + std::to_string(status));
}

}  // namespace

void mountDiskWorkspace(const std::string& image, const std::string& target, std::uint64_t bytes,
                        std::uint32_t owner) {
    const Fd fd(::open(image.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!fd) throwErrno("open", image);
    struct statvfs disk {};
    if (::fstatvfs(fd.get(), &disk) != 0) throwErrno("statvfs", image);
    if (disk.f_bavail * disk.f_frsize < bytes) {
        throw Error(ErrorCode::DiskFull, "the disk has no room for another workspace");
    }
    if (::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) throwErrno("truncate", image);
    makeFileSystem(image, bytes, owner);
    const sys::LoopDevice loop = sys::LoopDevice::attach(fd.get(), image);
    sys::mount(loop.path(), target, "ext4", MS_NOSUID | MS_NODEV | MS_NOATIME, "noinit_itable");
    sys::removeFile(image);
    const std::string lost = target + "/lost+found";
    if (::rmdir(lost.c_str()) != 0 && errno != ENOENT) throwErrno("rmdir", lost);
    if (::chmod(target.c_str(), 0700) != 0) throwErrno("chmod", target);
}

void removeDiskWorkspace(const std::string& image) {
    const auto end = std::chrono::steady_clock::now() + kDiskEnd;
    for (;;) {
        bool there = false;
        for (const sys::LoopInUse& loop : sys::loopsInUse()) {
            if (loop.backing != image) continue;
            there = true;
            sys::releaseLoop(loop.device);
        }
        if (!there) break;
        if (std::chrono::steady_clock::now() > end) {
            throw std::runtime_error("the disk of a sandbox is still in use");
        }
        ::poll(nullptr, 0, kDiskLook);
    }
    sys::removeFile(image);
}

}  // namespace hearth::pool::launcher
