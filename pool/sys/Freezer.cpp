#include "pool/sys/Freezer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "base/Error.h"
#include "base/Fd.h"
#include "pool/sys/Files.h"

namespace hearth::sys {
namespace {

// Polls: v1 has no event for a group that is frozen; that of v2 would cost another descriptor.
constexpr auto kLook = std::chrono::microseconds(200);

struct Words {
    const char* file;
    const char* freeze;
    const char* thaw;
};

const Words& wordsOf(CgroupVersion version) {
    static constexpr Words kV1{"/freezer.state", "FROZEN", "THAWED"};
    static constexpr Words kV2{"/cgroup.freeze", "1", "0"};
    return version == CgroupVersion::V2 ? kV2 : kV1;
}

/// Reads a short kernel file; empty if it cannot be read.
std::string shortText(const std::string& path) noexcept {
    try {
        return readFile(path).value_or("");
    } catch (const std::exception&) {
        return {};
    }
}

}  // namespace

Freezer::Freezer(const Cgroups& cgroups, const std::string& path)
    : folder_(cgroups.directory("freezer", path)), version_(cgroups.version()) {}

bool Freezer::exists(const Cgroups& cgroups) {
    return cgroups.directory("freezer", "").has_value();
}

void Freezer::handTo(uid_t owner) const {
    if (!folder_) return;
    const std::string file = *folder_ + wordsOf(version_).file;
    if (::access(file.c_str(), F_OK) != 0) return;
    if (::chown(file.c_str(), owner, static_cast<gid_t>(-1)) != 0) throwErrno("chown", file);
}

bool Freezer::freeze(std::chrono::milliseconds limit) const noexcept {
    if (!folder_ || !ask(wordsOf(version_).freeze)) return false;
    const auto end = std::chrono::steady_clock::now() + limit;
    while (!stopped()) {
        if (std::chrono::steady_clock::now() >= end) {
            thaw();
            return false;
        }
        std::this_thread::sleep_for(kLook);
    }
    return true;
}

bool Freezer::thaw() const noexcept {
    if (!folder_ || !frozen()) return true;
    return ask(wordsOf(version_).thaw) || !frozen();
}

bool Freezer::frozen() const noexcept {
    if (!folder_) return false;
    const std::string text = shortText(*folder_ + wordsOf(version_).file);
    return version_ == CgroupVersion::V2 ? text.starts_with("1") : text.starts_with("FR");
}

bool Freezer::ask(const char* word) const noexcept {
    const std::string file = *folder_ + wordsOf(version_).file;
    const Fd fd(::open(file.c_str(), O_WRONLY | O_CLOEXEC));
    return fd && ::write(fd.get(), word, std::strlen(word)) > 0;
}

bool Freezer::stopped() const noexcept {
    if (version_ == CgroupVersion::V2) {
        return keyedNumber(shortText(*folder_ + "/cgroup.events"), "frozen") == 1;
    }
    return shortText(*folder_ + wordsOf(version_).file).starts_with("FROZEN");
}

}  // namespace hearth::sys
