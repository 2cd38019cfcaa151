#include "pool/sys/LoopDevice.h"

#include <fcntl.h>
#include <linux/loop.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/Error.h"
#include "pool/sys/Files.h"

namespace hearth::sys {
namespace {

constexpr int kAttempts = 64;

}  // namespace

LoopDevice LoopDevice::attach(int backing_fd, const std::string& backing_path) {
    const Fd control(::open("/dev/loop-control", O_RDWR | O_CLOEXEC));
    if (!control) throwErrno("open", "/dev/loop-control");
    for (int i = 0; i < kAttempts; ++i) {
        const int index = ::ioctl(control.get(), LOOP_CTL_GET_FREE);
        if (index < 0) throwErrno("LOOP_CTL_GET_FREE");
        std::string path = "/dev/loop" + std::to_string(index);
        Fd device(::open(path.c_str(), O_RDWR | O_CLOEXEC));
        if (!device) {
            if (errno == ENOENT || errno == ENXIO) continue;
            throwErrno("open", path);
        }
        loop_config config{};
        config.fd = static_cast<__u32>(backing_fd);
        config.info.lo_flags = LO_FLAGS_AUTOCLEAR;
        const std::size_t length =
            std::min(backing_path.size(), sizeof config.info.lo_file_name - 1);
        std::memcpy(config.info.lo_file_name, backing_path.data(), length);
        if (::ioctl(device.get(), LOOP_CONFIGURE, &config) == 0) {
            return {std::move(device), std::move(path)};
        }
        if (errno != EBUSY) throwErrno("LOOP_CONFIGURE", path);  // another process was faster
    }
    throwErrno(EBUSY, "no free loop device");
}

std::vector<LoopInUse> loopsInUse() {
    constexpr std::string_view kDeleted = " (deleted)";
    std::vector<LoopInUse> loops;
    for (const std::string& name : listDirectory("/sys/block")) {
        if (!name.starts_with("loop")) continue;
        std::optional<std::string> backing =
            readFile("/sys/block/" + name + "/loop/backing_file", 4096);
        if (!backing) continue;
        while (backing->ends_with('\n')) backing->pop_back();
        if (backing->ends_with(kDeleted)) backing->resize(backing->size() - kDeleted.size());
        loops.push_back({"/dev/" + name, *backing});
    }
    return loops;
}

void releaseLoop(const std::string& device) {
    const Fd fd(::open(device.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd) return;
    if (::ioctl(fd.get(), LOOP_CLR_FD) != 0 && errno != ENXIO && errno != EBUSY) {
        throwErrno("LOOP_CLR_FD", device);
    }
}

}  // namespace hearth::sys
