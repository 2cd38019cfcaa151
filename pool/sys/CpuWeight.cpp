#include "pool/sys/CpuWeight.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>

#include "base/Error.h"
#include "base/Fd.h"
#include "pool/sys/Files.h"

namespace hearth::sys {
namespace {

constexpr std::uint64_t kFirst = 32;
/// 100 in cpu.weight equal 1024 in cpu.shares.
constexpr std::uint64_t kOrdinaryWeight = kOrdinaryCpuShares * 100 / 1024;

std::uint64_t numberOf(CgroupVersion version, CpuWeight weight) {
    const std::uint64_t ordinary =
        version == CgroupVersion::V2 ? kOrdinaryWeight : kOrdinaryCpuShares;
    return weight == CpuWeight::First ? kFirst * ordinary : ordinary;
}

std::optional<std::uint64_t> readNumber(const std::string& path) noexcept {
    const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) return std::nullopt;
    std::array<char, 32> text{};
    const ssize_t n = ::read(file.get(), text.data(), text.size());
    std::uint64_t number = 0;
    if (n <= 0 || std::from_chars(text.data(), text.data() + n, number).ec != std::errc{}) {
        return std::nullopt;
    }
    return number;
}

}  // namespace

CpuWeightFile::CpuWeightFile(const Cgroups& cgroups, const std::string& path)
    : file_(cgroups.directory("cpu", path)), version_(cgroups.version()) {
    if (file_) file_->append(version_ == CgroupVersion::V2 ? "/cpu.weight" : "/cpu.shares");
    if (file_ && ::access(file_->c_str(), F_OK) != 0) file_.reset();
}

void CpuWeightFile::handTo(uid_t owner) const {
    if (!file_) return;
    writeKernelFile(*file_, std::to_string(numberOf(version_, CpuWeight::Ordinary)));
    if (::chown(file_->c_str(), owner, static_cast<gid_t>(-1)) != 0) throwErrno("chown", *file_);
}

bool CpuWeightFile::set(CpuWeight weight) const noexcept {
    if (!file_) return true;
    const std::uint64_t number = numberOf(version_, weight);
    std::array<char, 32> text{};
    const auto end = std::to_chars(text.data(), text.data() + text.size(), number).ptr;
    const Fd file(::open(file_->c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
    if (!file && errno == ENOENT) return true;
    if (file && ::write(file.get(), text.data(), static_cast<std::size_t>(end - text.data())) > 0) {
        return true;
    }
    if (file && errno == ENODEV) return true;  // gone meanwhile
    return readNumber(*file_) == number;
}

}  // namespace hearth::sys
