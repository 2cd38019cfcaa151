#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::pool {

/// The rule for language names in an image's table: they appear in answers, metrics and
/// manifests.
inline constexpr const char* kLanguageNameRule = "1 to 32 of a-z, 0-9 and + # . _ -";

inline bool isLanguageName(std::string_view name) {
    return !name.empty() && name.size() <= 32 && std::all_of(name.begin(), name.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
               std::string_view("+#._-").find(c) != std::string_view::npos;
    });
}

/// The most languages of an image.
inline constexpr std::size_t kMostLanguages = 64;

/// Another common name of a language.
struct LanguageAlias {
    std::string_view alias;
    std::string_view language;
    bool distinct = false;  ///< an image with both names means two different programs
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

/// Returns the language that a name means in the table, for any image; else the name itself.
inline std::string_view canonicalLanguage(std::string_view name) {
    const auto at = std::find_if(kLanguageAliases.begin(), kLanguageAliases.end(),
                                 [&](const LanguageAlias& each) { return each.alias == name; });
    return at == kLanguageAliases.end() ? name : at->language;
}

/// Returns the name that an image with the languages `known` has for `asked`; empty if it has
/// none.
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
