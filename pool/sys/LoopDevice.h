#pragma once

#include <string>
#include <vector>

#include "base/Fd.h"

namespace hearth::sys {

/// A loop device over a file. The kernel frees it by itself when nothing uses it any more
/// (autoclear): keep this object until the device is mounted. Move-only.
class LoopDevice {
public:
    /// Takes a free device. Throws std::system_error; needs root.
    static LoopDevice attach(int backing_fd, const std::string& backing_path);

    const std::string& path() const noexcept { return path_; }

private:
    LoopDevice(Fd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

    Fd fd_;
    std::string path_;
};

struct LoopInUse {
    std::string device;   ///< /dev/loop3
    std::string backing;  ///< the kernel's path, without a trailing " (deleted)"
};
/// Returns every loop device in use on the machine.
std::vector<LoopInUse> loopsInUse();
/// Releases the device as soon as nothing has it open. A missing one is fine.
void releaseLoop(const std::string& device);

}  // namespace hearth::sys
