#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hearth::broker {

/// Which answers a Masker can read: those in which each ASCII character is its own byte.

/// The charset that keeps an answer with this Content-Type from being read, as it may be shown; or
/// nullopt. Every charset that a client could find in the field must be known as a superset of
/// ASCII: UTF-8, ISO 8859, Windows, KOI8, EUC, GBK, Big5. Not so: UTF-7, UTF-16, UTF-32, EBCDIC,
/// ISO-2022, HZ, and Shift_JIS, where some servers write a backslash in two bytes.
std::optional<std::string> unreadableCharset(std::string_view content_type);

/// Whether the bytes that a body begins with say that it is in no superset of ASCII: the mark of
/// UTF-16, UTF-32 or UTF-7, or an XML declaration in EBCDIC.
bool beginsUnreadable(std::string_view body) noexcept;
/// The bytes that beginsUnreadable() needs.
constexpr std::size_t kBodyMark = 4;

/// The value of an Accept field without its charset parameters; empty where it cannot be read.
std::string withoutCharset(std::string_view accept);

}  // namespace hearth::broker
