#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::agent {

/// Turns a client's path into one relative to the workspace: `""` for the workspace itself, else
/// components joined by single slashes, none of them "." or "..". Nullopt if it has a NUL, an empty
/// component, more than 4,096 bytes, or leads outside. Pure.
inline std::optional<std::string> workspacePath(std::string_view path) {
    constexpr std::string_view kRoot = "/workspace";
    if (path.size() > 4'096 || path.find('\0') != std::string_view::npos) return std::nullopt;
    if (!path.empty() && path.front() == '/') {
        if (path.substr(0, kRoot.size()) != kRoot) return std::nullopt;
        path.remove_prefix(kRoot.size());
        if (!path.empty()) {
            if (path.front() != '/') return std::nullopt;
            path.remove_prefix(1);
        }
    }
    std::vector<std::string_view> parts;
    while (!path.empty()) {
        const std::size_t slash = path.find('/');
        const std::string_view part = path.substr(0, slash);
        if (part.empty() || part.size() > 255) return std::nullopt;
        if (part == "..") {
            if (parts.empty()) return std::nullopt;
            parts.pop_back();
        } else if (part != ".") {
            parts.push_back(part);
        }
        if (slash == std::string_view::npos) break;
        path.remove_prefix(slash + 1);
    }
    std::string out;
    for (const std::string_view part : parts) {
        if (!out.empty()) out.push_back('/');
        out += part;
    }
    return out;
}

/// Orders paths component by component, as a walk through sorted directories meets them.
inline bool pathBefore(std::string_view a, std::string_view b) {
    std::size_t i = 0;
    while (i < a.size() && i < b.size() && a[i] == b[i]) ++i;
    if (i == a.size() || i == b.size()) return a.size() < b.size();
    if (a[i] == '/' || b[i] == '/') return a[i] == '/';
    return static_cast<unsigned char>(a[i]) < static_cast<unsigned char>(b[i]);
}

}  // namespace hearth::agent
