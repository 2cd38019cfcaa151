#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace hearth::controller {

/// The size of a file system, and its bytes that are free for the server.
struct DiskSpace {
    std::uint64_t capacity = 0;
    std::uint64_t free = 0;
};

/// Returns nullopt if the file system cannot be read.
std::optional<DiskSpace> diskSpaceAt(const std::string& path);

using AskDisk = std::function<std::optional<DiskSpace>()>;

/// The part of a disk that is reserved for the server's state. While less is free, no sandbox is
/// created and nothing large is written, so small records and answers still have room. Thread-safe.
class DiskReserve {
public:
    DiskReserve(AskDisk ask, std::uint64_t bytes) : ask_(std::move(ask)), bytes_(bytes) {}
    DiskReserve(const std::string& path, std::uint64_t bytes)
        : DiskReserve([path] { return diskSpaceAt(path); }, bytes) {}

    /// True if less than the reserve is free. False if the free space is unknown.
    bool low() const;
    /// Returns `bytes`, but at most a tenth of the disk: a small disk must stay usable.
    static std::uint64_t of(const DiskSpace& disk, std::uint64_t bytes);

private:
    const AskDisk ask_;
    const std::uint64_t bytes_;
};

/// The space that sandboxes may be promised on the disk of their workspaces. Images are sparse, so
/// the promises may be `overcommit` times the disk's size without the reserve. Holds no state: the
/// sum of the promises comes from all existing sandboxes. Thread-safe.
class DiskBudget {
public:
    /// Workspaces are on no disk of this server: everything fits.
    DiskBudget() = default;
    DiskBudget(AskDisk ask, std::uint64_t reserve, std::uint32_t overcommit)
        : ask_(std::move(ask)), reserve_(reserve), overcommit_(overcommit) {}

    struct Room {
        std::uint64_t most = UINT64_MAX;  ///< for all promises together
        std::string refusal;              ///< the reason; empty: it fits
    };
    /// Room for one more workspace of `bytes` when `promised` bytes are already promised.
    Room roomFor(std::uint64_t bytes, std::uint64_t promised) const;

private:
    AskDisk ask_;
    std::uint64_t reserve_ = 0;
    std::uint32_t overcommit_ = 1;
};

}  // namespace hearth::controller
