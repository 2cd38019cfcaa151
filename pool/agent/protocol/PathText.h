#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "pool/tar/Utf8.h"

namespace hearth::agent {

// A file's name is bytes, but JSON holds text. A name that is not UTF-8 is written with each bad
// byte as %XX ("%D6%D0") and each '%' as %25; so is a name that would read as such a text. All
// other names stand as they are.

namespace detail {

/// The byte that %XX at `at` stands for, if one is written so; else -1.
inline int escapedByte(std::string_view text, std::size_t at) {
    const auto digit = [&](std::size_t i) {
        const char c = i < text.size() ? text[i] : '\0';
        if (c >= '0' && c <= '9') return c - '0';
        const char lower = static_cast<char>(c | 0x20);
        return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
    };
    if (at >= text.size() || text[at] != '%' || digit(at + 1) < 0 || digit(at + 2) < 0) return -1;
    const int byte = digit(at + 1) * 16 + digit(at + 2);
    return byte >= 0x80 || byte == '%' ? byte : -1;
}

inline std::string withoutEscapes(std::string_view text) {
    std::string out;
    for (std::size_t at = 0; at < text.size(); ++at) {
        const int byte = escapedByte(text, at);
        out.push_back(byte < 0 ? text[at] : static_cast<char>(byte));
        if (byte >= 0) at += 2;
    }
    return out;
}

inline bool isUtf8(std::string_view name) {
    while (!name.empty()) {
        const std::size_t length = tar::utf8Length(name);
        if (length == 0) return false;
        name.remove_prefix(length);
    }
    return true;
}

/// True for the text of a name that does not stand as it is.
inline bool isEscaped(std::string text) {
    while (true) {
        std::string bytes = withoutEscapes(text);
        if (bytes == text) return false;
        if (!isUtf8(bytes)) return true;
        text = std::move(bytes);
    }
}

inline std::string withEscapes(std::string_view name) {
    constexpr std::string_view kDigits = "0123456789ABCDEF";
    std::string out;
    while (!name.empty()) {
        const std::size_t length = name.front() == '%' ? 0 : tar::utf8Length(name);
        out.append(name.substr(0, length));
        if (length == 0) {
            const auto byte = static_cast<unsigned char>(name.front());
            out.append({'%', kDigits[byte >> 4U], kDigits[byte & 15U]});
        }
        name.remove_prefix(length == 0 ? 1 : length);
    }
    return out;
}

/// Applies `change` to each name of a path for which `concerns` is true.
template <typename Concerns, typename Change>
std::string eachName(std::string_view path, Concerns concerns, Change change) {
    std::string out;
    while (true) {
        const std::size_t end = path.find('/');
        const std::string_view name = path.substr(0, end);
        out += concerns(name) ? change(name) : std::string(name);
        if (end == std::string_view::npos) return out;
        out.push_back('/');
        path.remove_prefix(end + 1);
    }
}

inline bool hasEscape(std::string_view name) {
    return name.find('%') != std::string_view::npos && isEscaped(std::string(name));
}

}  // namespace detail

/// Returns the text of a path.
inline std::string pathText(std::string_view bytes) {
    const auto concerns = [](std::string_view name) {
        return !detail::isUtf8(name) || detail::hasEscape(name);
    };
    return detail::eachName(bytes, concerns, detail::withEscapes);
}

/// Returns the path with this text.
inline std::string pathBytes(std::string_view text) {
    return detail::eachName(text, detail::hasEscape, detail::withoutEscapes);
}

/// Returns the text of a path that a client named: by its text, or by its bytes.
inline std::string requestedPath(std::string_view path) {
    const auto concerns = [](std::string_view name) { return !detail::isUtf8(name); };
    return detail::eachName(path, concerns, detail::withEscapes);
}

}  // namespace hearth::agent
