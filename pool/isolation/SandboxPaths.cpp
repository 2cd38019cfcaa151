#include "pool/isolation/SandboxPaths.h"

#include "base/Ids.h"

namespace hearth::pool::launcher {
namespace {

constexpr std::string_view kIdPrefix = "sb_";

}  // namespace

std::string SandboxPaths::container(const SandboxId& id) const {
    return "hearth-" + instance_.name + "-" + id.substr(kIdPrefix.size());
}

std::optional<SandboxId> SandboxPaths::idOf(const std::string& container) const {
    const std::string prefix = "hearth-" + instance_.name + "-";
    if (!container.starts_with(prefix)) return std::nullopt;
    SandboxId id = std::string(kIdPrefix) + container.substr(prefix.size());
    if (!isId(id, kIdPrefix)) return std::nullopt;
    return id;
}

std::string SandboxPaths::uidLeases() const {
    return instance_.run_dir.substr(0, instance_.run_dir.rfind('/')) + "/uids";
}

}  // namespace hearth::pool::launcher
