#pragma once

#include <string_view>

#include "controller/spec/PoolName.h"

namespace hearth::controller {

/// Checks the rule of Kubernetes for most of its names and for the prefixes of labels: DNS labels
/// with dots between them.
inline bool isDnsSubdomain(std::string_view name) {
    if (name.size() > 253) return false;
    for (;;) {
        const std::size_t dot = name.find('.');
        if (!isPoolName(name.substr(0, dot))) return false;
        if (dot == std::string_view::npos) return true;
        name.remove_prefix(dot + 1);
    }
}

}  // namespace hearth::controller
