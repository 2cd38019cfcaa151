#include "pool/gpu/cdi/CdiEdits.h"

#include <algorithm>

#include "base/Error.h"

namespace hearth::pool::cdi {
namespace {

[[noreturn]] void contradict(const std::string& what, const std::string& first,
                             const std::string& second) {
    throw Error(ErrorCode::InvalidSpec,
                what + " is given twice, as \"" + first + "\" and as \"" + second + "\"");
}

std::string nameOf(const std::string& variable) {
    return variable.substr(0, variable.find('='));
}

std::string describe(const CdiNode& node) {
    std::string text = node.host_path + " " + node.permissions;
    if (node.major) text += " " + std::to_string(*node.major) + ":" + std::to_string(*node.minor);
    return text;
}

std::string describe(const CdiMount& mount) {
    return mount.host_path + (mount.writable ? " rw" : " ro") +
           (mount.executable ? "" : " noexec") + (mount.recursive ? " rbind" : "");
}

std::string describe(const std::string& variable) {
    return variable;
}

/// Adds `item` unless it is there; two items with the same `key` must not differ.
template <typename Item, typename Key>
void add(std::vector<Item>& items, const Item& item, const std::string& kind, const Key& key) {
    const auto found = std::find_if(items.begin(), items.end(),
                                    [&](const Item& each) { return key(each) == key(item); });
    if (found == items.end()) {
        items.push_back(item);
    } else if (*found != item) {
        contradict(kind + " " + key(item), describe(*found), describe(item));
    }
}

}  // namespace

bool CdiEdits::empty() const {
    return *this == CdiEdits{};
}

void CdiEdits::merge(const CdiEdits& other) {
    for (const CdiNode& node : other.nodes) {
        add(nodes, node, "the device node", [](const CdiNode& each) { return each.path; });
    }
    for (const CdiMount& mount : other.mounts) {
        add(mounts, mount, "the mount", [](const CdiMount& each) { return each.container_path; });
    }
    for (const std::string& variable : other.env) add(env, variable, "the variable", nameOf);
    for (const CdiHook& hook : other.hooks) {
        if (std::find(hooks.begin(), hooks.end(), hook) == hooks.end()) hooks.push_back(hook);
    }
    gids.insert(other.gids.begin(), other.gids.end());
}

}  // namespace hearth::pool::cdi
