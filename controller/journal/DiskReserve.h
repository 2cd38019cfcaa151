#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace hearth::controller {

/// A file system's size and what of it is free for the server.
struct DiskSpace {
    std::uint64_t capacity = 0;
    std::uint64_t free = 0;
};

/// nullopt where it cannot be asked.
std::optional<DiskSpace> diskSpaceAt(const std::string& path);

using AskDisk = std::function<std::optional<DiskSpace>()>;

/// The part of a disk kept for the server's state: no sandbox is made and nothing large is written
/// while less is free, so that small records and answers still have room. Thread-safe.
class DiskReserve {
public:
    DiskReserve(AskDisk ask, std::uint64_t bytes) : ask_(std::move(ask)), bytes_(bytes) {}
    DiskReserve(const std::string& path, std::uint64_t bytes)
        : DiskReserve([path] { return diskSpaceAt(path); }, bytes) {}

    /// Less is free than the reserve. False where nobody knows.
    bool low() const;
    /// At most a tenth of the disk: a small one must stay of use.
    static std::uint64_t of(const DiskSpace& disk, std::uint64_t bytes);

private:
    const AskDisk ask_;
    const std::uint64_t bytes_;
};

/// The space that sandboxes may be promised on the disk of their workspaces. Images are sparse, so
/// more may be promised than there is: `overcommit` times as much, the reserve left out. Holds no
/// state: what is promised is the sum over all sandboxes that exist. Thread-safe.
class DiskBudget {
public:
    /// Workspaces are on no disk of ours: everything fits.
    DiskBudget() = default;
    DiskBudget(AskDisk ask, std::uint64_t reserve, std::uint32_t overcommit)
        : ask_(std::move(ask)), reserve_(reserve), overcommit_(overcommit) {}

    struct Room {
        std::uint64_t most = UINT64_MAX;  ///< of all promises together
        std::string refusal;              ///< why not; empty: it fits
    };
    /// Room for one more workspace of `bytes` where `promised` are promised.
    Room roomFor(std::uint64_t bytes, std::uint64_t promised) const;

private:
    AskDisk ask_;
    std::uint64_t reserve_ = 0;
    std::uint32_t overcommit_ = 1;
};

}  // namespace hearth::controller
