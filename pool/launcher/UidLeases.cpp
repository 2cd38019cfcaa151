#include "pool/launcher/UidLeases.h"

#include <unistd.h>

#include <cerrno>
#include <charconv>

#include "base/Error.h"
#include "base/Ids.h"
#include "pool/launcher/BundleConfig.h"
#include "pool/sys/Files.h"

namespace hearth::pool::launcher {

std::vector<std::pair<std::uint32_t, SandboxId>> UidLeases::held() const {
    std::vector<std::pair<std::uint32_t, SandboxId>> leases;
    for (const std::string& name : sys::listDirectory(directory_)) {
        std::uint32_t index = 0;
        const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
        if (error != std::errc() || end != name.data() + name.size()) continue;
        char target[128];
        const ssize_t n = ::readlink((directory_ + "/" + name).c_str(), target, sizeof target);
        if (n <= 0) continue;  // released meanwhile
        const std::string holder(target, static_cast<std::size_t>(n));
        if (holder.starts_with(instance_ + "/")) {
            leases.emplace_back(index, holder.substr(instance_.size() + 1));
        }
    }
    return leases;
}

std::uint32_t UidLeases::lease(const SandboxId& id) const {
    for (const auto& [index, holder] : held()) {
        if (holder == id) return base_ + index * kRangeSize;
    }
    // Begins anywhere, so that a range is not taken again right after it was given back.
    std::uint32_t start = 0;
    randomBytes(&start, sizeof start);
    const std::string holder = instance_ + "/" + id;
    for (std::uint32_t i = 0; i < ranges_; ++i) {
        const std::uint32_t index = (start % ranges_ + i) % ranges_;
        const std::string path = directory_ + "/" + std::to_string(index);
        if (::symlink(holder.c_str(), path.c_str()) == 0) return base_ + index * kRangeSize;
        if (errno != EEXIST) throwErrno("symlink", path);
    }
    throw Error(ErrorCode::QuotaExceeded, "every range of user ids is taken")
        .hint("end sandboxes, or give the server more ranges");
}

void UidLeases::release(const SandboxId& id) const {
    for (const auto& [index, holder] : held()) {
        if (holder == id) sys::removeFile(directory_ + "/" + std::to_string(index));
    }
}

std::vector<SandboxId> UidLeases::holders() const {
    std::vector<SandboxId> ids;
    for (const auto& [index, holder] : held()) {
        if (isId(holder, "sb_")) ids.push_back(holder);
    }
    return ids;
}

}  // namespace hearth::pool::launcher
