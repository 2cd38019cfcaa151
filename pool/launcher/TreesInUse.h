#pragma once

#include <optional>
#include <set>
#include <string>

#include "base/Instance.h"

namespace hearth::pool::launcher {

/// The unpacked trees that sandboxes of this instance have as their root, whole sandboxes or
/// pieces; nullopt while there is one whose tree cannot be told. Only for root.
std::optional<std::set<std::string>> treesInUse(const Instance& instance);

}  // namespace hearth::pool::launcher
