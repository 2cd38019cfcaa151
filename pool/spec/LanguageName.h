#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

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

/// A common name of a language beside its own.
struct LanguageAlias {
    std::string_view alias;
    std::string_view language;
    bool distinct = false;  ///< an image that names both means two programs by them
};

inline constexpr std::array<LanguageAlias, 12> kLanguageAliases{{
    {"py", "python"},
    {"python3", "python", true},
    {"js", "javascript"},
    {"node", "javascript"},
    {"nodejs", "javascript"},
    {"ts", "typescript"},
    {"golang", "go"},
    {"rs", "rust"},
    {"c++", "cpp"},
    {"sh", "bash", true},
    {"shell", "bash", true},
    {"shell", "sh", true},
}};

/// The language that a name stands for in the table, whatever an image has; else the name.
inline std::string_view canonicalLanguage(std::string_view name) {
    const auto at = std::find_if(kLanguageAliases.begin(), kLanguageAliases.end(),
                                 [&](const LanguageAlias& each) { return each.alias == name; });
    return at == kLanguageAliases.end() ? name : at->language;
}

/// The name by which an image that has the languages `known` calls the one asked for; empty if it
/// has it under none.
inline std::string languageAmong(std::string_view asked, const std::vector<std::string>& known) {
    const auto has = [&](std::string_view name) {
        return std::find(known.begin(), known.end(), name) != known.end();
    };
    for (const LanguageAlias& each : kLanguageAliases) {
        if (each.alias != asked || !has(each.language)) continue;
        if (!each.distinct || !has(asked)) return std::string(each.language);
    }
    if (has(asked)) return std::string(asked);
    for (const LanguageAlias& each : kLanguageAliases) {
        const bool same = !each.distinct && each.language == canonicalLanguage(asked);
        if (same && has(each.alias)) return std::string(each.alias);
    }
    return {};
}

}  // namespace hearth::pool
