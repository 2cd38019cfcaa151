#include "pool/launcher/DiskWorkspace.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/Error.h"
#include "base/Fd.h"
#include "pool/sys/Files.h"
#include "pool/sys/LoopDevice.h"
#include "pool/sys/Namespaces.h"
#include "pool/sys/Process.h"

namespace hearth::pool::launcher {
namespace {

constexpr std::uint64_t kBytesPerInode = 16'384;
constexpr std::uint64_t kFewestInodes = 1024;
// 2^32 is what ext4 can have.
constexpr std::uint64_t kMostInodes = 1ULL << 30U;

void makeFileSystem(const std::string& image, std::uint64_t bytes, std::uint32_t owner) {
    const std::string id = std::to_string(owner);
    const std::uint64_t inodes = std::clamp(bytes / kBytesPerInode, kFewestInodes, kMostInodes);
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
    for (const sys::LoopInUse& loop : sys::loopsInUse()) {
        if (loop.backing == image) sys::releaseLoop(loop.device);
    }
    sys::removeFile(image);
}

}  // namespace hearth::pool::launcher
