#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::cli {

enum class LineStyle : std::uint8_t { Plain, Bold, Dim, Heading, Selected, Alarm };

/// One line of a screen; without control characters.
struct ScreenLine {
    std::string text;
    LineStyle style = LineStyle::Plain;
};
using Screen = std::vector<ScreenLine>;

/// Foreign text for one cell of a screen: printable(), without more than two marks on one letter.
std::string cellText(std::string_view foreign);
/// Columns that a cellText takes on a terminal.
std::size_t columnsOf(std::string_view text);
/// Exactly `columns` wide: padded with spaces, or cut with "…" at its end.
std::string fitted(std::string_view text, std::size_t columns, bool right = false);
/// The words in lines of at most `columns` columns; a longer word is cut.
std::vector<std::string> wrapped(const std::string& text, std::size_t columns);
/// A code point as UTF-8.
std::string utf8Of(char32_t point);

}  // namespace hearth::cli
