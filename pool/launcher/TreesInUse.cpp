#include "pool/launcher/TreesInUse.h"

#include <nlohmann/json.hpp>

#include "base/Ids.h"
#include "base/Json.h"
#include "pool/isolation/SandboxPaths.h"
#include "pool/sys/Files.h"

namespace hearth::pool::launcher {
std::optional<std::set<std::string>> treesInUse(const Instance& instance) {
    const SandboxPaths names(instance);
    std::set<std::string> used;
    for (const std::string& id : sys::listDirectory(names.sandboxes())) {
        if (!isId(id, "sb_")) continue;
        const auto meta = sys::readFile(names.sandboxes() + "/" + id + "/meta.json");
        const Json json = meta ? Json::parse(*meta, nullptr, false) : Json();
        if (!json.is_object() || !json.contains("rootfs") || !json["rootfs"].is_string()) {
            return std::nullopt;
        }
        used.insert(json["rootfs"].get<std::string>());
    }
    return used;
}

}  // namespace hearth::pool::launcher
