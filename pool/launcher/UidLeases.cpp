#include "pool/launcher/UidLeases.h"

#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>

#include "base/Error.h"
#include "base/Ids.h"
#include "pool/isolation/SandboxIdentity.h"
#include "pool/launcher/OciBundle.h"
#include "pool/sys/Files.h"

namespace hearth::pool::launcher {
namespace {

std::optional<std::uint32_t> numberIn(const std::string& text) {
    std::uint32_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return number;
}

/// Returns the text of a symbolic link; nullopt without one.
std::optional<std::string> linkText(const std::string& path) {
    char target[128];
    const ssize_t n = ::readlink(path.c_str(), target, sizeof target);
    if (n <= 0) return std::nullopt;
    return std::string(target, static_cast<std::size_t>(n));
}

}  // namespace

std::string UidLeases::leasePath(std::uint32_t index) const {
    return directory_ + "/" + std::to_string(index);
}

std::string UidLeases::indexPath(const SandboxId& id) const {
    return directory_ + "/" + instance_ + "." + id;
}

std::vector<std::pair<std::uint32_t, SandboxId>> UidLeases::held() const {
    ++scans_;
    std::vector<std::pair<std::uint32_t, SandboxId>> leases;
    for (const std::string& name : sys::listDirectory(directory_)) {
        const std::optional<std::uint32_t> index = numberIn(name);
        if (!index) continue;
        const std::optional<std::string> holder = linkText(directory_ + "/" + name);
        if (!holder || !holder->starts_with(instance_ + "/"))
            continue;  // released, or a lease of another sandbox
        leases.emplace_back(*index, holder->substr(instance_.size() + 1));
    }
    return leases;
}

std::optional<std::uint32_t> UidLeases::rangeOf(const SandboxId& id) const {
    const std::optional<std::string> text = linkText(indexPath(id));
    const std::optional<std::uint32_t> index = text ? numberIn(*text) : std::nullopt;
    if (!index || linkText(leasePath(*index)) != instance_ + "/" + id) return std::nullopt;
    return index;
}

/// Writes atomically, so that a reader sees the old index or the new one.
void UidLeases::note(const SandboxId& id, std::uint32_t index) const {
    const std::string aside = indexPath(id) + ".new";
    sys::removeFile(aside);
    if (::symlink(std::to_string(index).c_str(), aside.c_str()) != 0) throwErrno("symlink", aside);
    if (::rename(aside.c_str(), indexPath(id).c_str()) != 0) throwErrno("rename", aside);
}

std::uint32_t UidLeases::lease(const SandboxId& id) const {
    if (const auto held = rangeOf(id)) return base_ + *held * kRangeSize;
    // Starts at a random index, so that a range is not taken again right after it was given back.
    std::uint32_t start = 0;
    randomBytes(&start, sizeof start);
    const std::string holder = instance_ + "/" + id;
    for (std::uint32_t i = 0; i < ranges_; ++i) {
        const std::uint32_t index = (start % ranges_ + i) % ranges_;
        const std::string path = leasePath(index);
        if (linkText(path)) continue;
        note(id, index);
        if (::symlink(holder.c_str(), path.c_str()) == 0) return base_ + index * kRangeSize;
        if (errno != EEXIST) throwErrno("symlink", path);
    }
    sys::removeFile(indexPath(id));
    throw Error(ErrorCode::QuotaExceeded, "every range of user ids is taken")
        .hint("end sandboxes, or give the server more ranges");
}

void UidLeases::release(const SandboxId& id) const {
    if (const auto held = rangeOf(id)) sys::removeFile(leasePath(*held));
    sys::removeFile(indexPath(id));
    sys::removeFile(indexPath(id) + ".new");
}

bool UidLeases::holds(const SandboxId& id) const {
    return linkText(indexPath(id)).has_value();
}

std::vector<SandboxId> UidLeases::holders() const {
    std::vector<SandboxId> ids;
    for (const auto& [index, holder] : held()) {
        if (isId(holder, "sb_")) ids.push_back(holder);
    }
    return ids;
}

}  // namespace hearth::pool::launcher
