#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace hearth::pool {

/// The rule for languages' names in an image's table: they appear in answers, metrics and
/// manifests.
inline constexpr const char* kLanguageNameRule = "1 to 32 of a-z, 0-9 and + # . _ -";

inline bool isLanguageName(std::string_view name) {
    return !name.empty() && name.size() <= 32 && std::all_of(name.begin(), name.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
               std::string_view("+#._-").find(c) != std::string_view::npos;
    });
}

/// An image has at most so many.
inline constexpr std::size_t kMostLanguages = 64;

}  // namespace hearth::pool
