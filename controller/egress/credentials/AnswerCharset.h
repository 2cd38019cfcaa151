#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hearth::egress {

/// SecretMasker can read only answers in which each ASCII character is one byte of its own.

/// Returns the charset (in a printable form) that makes an answer with this Content-Type
/// unreadable, or nullopt. Every charset that a client could find in the field must be a known
/// superset of ASCII: UTF-8, ISO 8859, Windows, KOI8, EUC, GBK, Big5. Not so: UTF-7, UTF-16,
/// UTF-32, EBCDIC, ISO-2022, HZ, and Shift_JIS, where some servers write a backslash in two bytes.
std::optional<std::string> unreadableCharset(std::string_view content_type);

/// True if a body's first bytes show an encoding that is no superset of ASCII: the mark of UTF-16,
/// UTF-32 or UTF-7, or an XML declaration in EBCDIC.
bool beginsUnreadable(std::string_view body) noexcept;
/// How many bytes beginsUnreadable() needs.
constexpr std::size_t kBodyMark = 4;

/// The value of an Accept field without its charset parameters; empty if it cannot be read.
std::string withoutCharset(std::string_view accept);

}  // namespace hearth::egress
