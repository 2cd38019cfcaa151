#pragma once

#include <optional>
#include <set>
#include <string>

#include "base/host/Instance.h"

namespace hearth::pool::launcher {

/// Returns the unpacked trees that sandboxes of this instance have as their root, whole sandboxes
/// or pieces; nullopt while one sandbox's tree is unknown. Only for root.
std::optional<std::set<std::string>> treesInUse(const Instance& instance);

}  // namespace hearth::pool::launcher
