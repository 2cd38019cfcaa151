#pragma once

#include <algorithm>
#include <string_view>

namespace hearth::controller {

/// The rule for pools' names, a DNS label: they appear in paths, metrics and manifests.
inline constexpr const char* kPoolNameRule =
    "must be 1 to 63 lower-case letters, digits and inner hyphens";

inline bool isPoolName(std::string_view name) {
    return !name.empty() && name.size() <= 63 && name.front() != '-' && name.back() != '-' &&
           std::ranges::all_of(name, [](char c) {
               return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
           });
}

}  // namespace hearth::controller
