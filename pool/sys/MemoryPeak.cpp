#include "pool/sys/MemoryPeak.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <charconv>

#include "base/Error.h"

namespace hearth::sys {

MemoryPeak::MemoryPeak(const Cgroups& cgroups, const std::string& path) {
    const std::optional<std::string> group = cgroups.directory("memory", path);
    if (!group) return;
    file_ = *group + (cgroups.version() == CgroupVersion::V2 ? "/memory.peak"
                                                             : "/memory.memsw.max_usage_in_bytes");
    // Before Linux 6.12 nobody may write memory.peak.
    struct stat status {};
    if (::stat(file_.c_str(), &status) != 0 || (status.st_mode & S_IWUSR) == 0) file_.clear();
}

void MemoryPeak::handTo(uid_t owner) const {
    if (file_.empty()) return;
    if (::chown(file_.c_str(), owner, static_cast<gid_t>(-1)) != 0) throwErrno("chown", file_);
}

std::optional<std::uint64_t> MemoryPeak::take() noexcept {
    if (!open_ && !file_.empty()) open_ = Fd(::open(file_.c_str(), O_RDWR | O_CLOEXEC));
    if (!open_) return std::nullopt;
    std::array<char, 32> text{};
    const ssize_t n = ::pread(open_.get(), text.data(), text.size(), 0);
    if (::pwrite(open_.get(), "0", 1, 0) < 0) return std::nullopt;
    std::uint64_t bytes = 0;
    if (n <= 0 || std::from_chars(text.data(), text.data() + n, bytes).ec != std::errc{}) {
        return std::nullopt;
    }
    return bytes;
}

}  // namespace hearth::sys
