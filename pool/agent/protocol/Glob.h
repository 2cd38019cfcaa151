#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace hearth::agent {

/// True for names that `*`, `?` and `**` never match, as in a shell: names that begin with a dot,
/// and caches that no run means to return. A pattern that spells them out matches them.
inline bool shyName(std::string_view name) {
    return name.empty() || name.front() == '.' || name == "__pycache__" || name == "node_modules";
}

/// Matches one component: `*` any characters, `?` one. Takes time of at most pattern times name.
inline bool componentMatches(std::string_view pattern, std::string_view name) {
    if (shyName(name) && !pattern.empty() && (pattern.front() == '*' || pattern.front() == '?')) {
        return false;
    }
    std::size_t p = 0;
    std::size_t n = 0;
    std::size_t star = std::string_view::npos;
    std::size_t mark = 0;
    while (n < name.size()) {
        if (p < pattern.size() && pattern[p] == '*') {
            star = p++;
            mark = n;
        } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
            ++p;
            ++n;
        } else if (star != std::string_view::npos) {
            p = star + 1;
            n = ++mark;
        } else {
            return false;
        }
    }
    while (p < pattern.size() && pattern[p] == '*') ++p;
    return p == pattern.size();
}

/// Matches a path component by component; `**` matches any number of them. A pattern without a
/// slash matches at every depth, as if it began with `**/`. Patterns with more than four `**` match
/// nothing: each multiplies the work.
inline bool globMatches(std::string_view pattern, std::string_view path, int stars = 0) {
    constexpr int kMostStars = 4;
    if (pattern.substr(0, 2) == "./") pattern.remove_prefix(2);
    while (true) {
        const std::size_t pattern_end = pattern.find('/');
        const std::string_view first = pattern.substr(0, pattern_end);
        if (first == "**") {
            if (++stars > kMostStars) return false;
            const bool last = pattern_end == std::string_view::npos;
            const std::string_view rest =
                last ? std::string_view("*") : pattern.substr(pattern_end + 1);
            while (true) {
                if (globMatches(rest, path, stars)) return true;
                const std::size_t slash = path.find('/');
                if (slash == std::string_view::npos || shyName(path.substr(0, slash))) return false;
                path.remove_prefix(slash + 1);
            }
        }
        const std::size_t path_end = path.find('/');
        if (!componentMatches(first, path.substr(0, path_end))) return false;
        const bool pattern_over = pattern_end == std::string_view::npos;
        const bool path_over = path_end == std::string_view::npos;
        if (pattern_over || path_over) return pattern_over && path_over;
        pattern.remove_prefix(pattern_end + 1);
        path.remove_prefix(path_end + 1);
    }
}

/// True if any of the patterns matches.
template <typename Patterns>
bool anyGlobMatches(const Patterns& patterns, std::string_view path) {
    for (const auto& pattern : patterns) {
        const std::string_view text = pattern;
        const bool anywhere = text.find('/') == std::string_view::npos && text != "**";
        if (globMatches(anywhere ? "**/" + std::string(text) : std::string(text), path))
            return true;
    }
    return false;
}

}  // namespace hearth::agent
