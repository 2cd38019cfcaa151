#include "controller/journal/DiskReserve.h"

#include <sys/statvfs.h>

#include <algorithm>

#include "base/Units.h"

namespace hearth::controller {
namespace {

std::string inMiB(std::uint64_t bytes) {
    return formatBytes(bytes >> 20U << 20U);
}

}  // namespace

std::optional<DiskSpace> diskSpaceAt(const std::string& path) {
    struct statvfs disk {};
    if (::statvfs(path.c_str(), &disk) != 0) return std::nullopt;
    return DiskSpace{std::uint64_t{disk.f_blocks} * disk.f_frsize,
                     std::uint64_t{disk.f_bavail} * disk.f_frsize};
}

std::uint64_t DiskReserve::of(const DiskSpace& disk, std::uint64_t bytes) {
    return std::min(bytes, disk.capacity / 10);
}

bool DiskReserve::low() const {
    const std::optional<DiskSpace> disk = ask_();
    return disk && disk->free < of(*disk, bytes_);
}

DiskBudget::Room DiskBudget::roomFor(std::uint64_t bytes, std::uint64_t promised) const {
    const std::optional<DiskSpace> disk = ask_ ? ask_() : std::nullopt;
    if (!disk) return {};
    const std::uint64_t reserve = DiskReserve::of(*disk, reserve_);
    Room room;
    room.most = (disk->capacity - reserve) * overcommit_;
    if (bytes == 0) return room;
    if (bytes > room.most || promised > room.most - bytes) {
        room.refusal = "a workspace of " + inMiB(bytes) + " does not fit: " + inMiB(promised) +
                       " of the disk's " + inMiB(room.most) + " are promised (" +
                       inMiB(disk->capacity) + " less a reserve of " + inMiB(reserve) + ", times " +
                       std::to_string(overcommit_) + ")";
    } else if (disk->free < reserve || disk->free - reserve < bytes) {
        room.refusal = "a workspace of " + inMiB(bytes) + " does not fit: the disk has " +
                       inMiB(disk->free) + " free, and the last " + inMiB(reserve) +
                       " are kept for the server's state";
    }
    return room;
}

}  // namespace hearth::controller
