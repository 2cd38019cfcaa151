#pragma once

#include <algorithm>
#include <string_view>

namespace hearth::controller {

/// The rule for tenants' names: they name folders, and appear in logs and answers.
inline constexpr const char* kTenantNameRule =
    "must be 1 to 63 letters, digits and inner '-', '_', '.'";

inline bool isTenantName(std::string_view name) {
    const auto plain = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    };
    return !name.empty() && name.size() <= 63 && plain(name.front()) && plain(name.back()) &&
           std::ranges::all_of(
               name, [&](char c) { return plain(c) || c == '-' || c == '_' || c == '.'; });
}

}  // namespace hearth::controller
