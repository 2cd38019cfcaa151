#pragma once

#include <clocale>
#include <cstddef>
#include <string>
#include <string_view>

namespace hearth::cli {

/// While it lives, this thread's wcwidth() uses UTF-8, whatever the user's locale is. Throws
/// system_error if libc has no C.UTF-8.
class Utf8Locale {
public:
    Utf8Locale();
    ~Utf8Locale();
    Utf8Locale(const Utf8Locale&) = delete;
    Utf8Locale& operator=(const Utf8Locale&) = delete;

private:
    locale_t mine_;
    locale_t before_;
};

/// Foreign text for one cell of a screen: printable(), without more than two marks on one letter.
/// Needs a Utf8Locale.
std::string cellText(std::string_view foreign);
/// Columns that a cellText takes on a terminal. Needs a Utf8Locale.
std::size_t columnsOf(std::string_view text);
/// Exactly `columns` wide: padded with spaces, or cut with "…" at its end. Needs a Utf8Locale.
std::string fitted(std::string_view text, std::size_t columns, bool right = false);
/// A code point as UTF-8.
std::string utf8Of(char32_t point);

}  // namespace hearth::cli
