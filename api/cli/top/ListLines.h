#pragma once

#include <optional>

#include "api/cli/top/Screen.h"

namespace hearth::cli {

/// Which rows of a list are drawn, and where.
struct ListWindow {
    std::size_t rows = 0;               ///< lines below the heading
    std::optional<std::size_t> chosen;  ///< the row with the cursor; nullopt: no cursor
};

/// A heading and the page of rows that holds the chosen one, `columns` wide; exactly `rows` + 1
/// lines. Needs a Utf8Locale, as all here.
Screen listLines(const TopTable& table, const ListWindow& window, std::size_t columns);
/// Words in lines of at most so many columns; a longer word is cut.
std::vector<std::string> wrapped(const std::string& text, std::size_t columns);

}  // namespace hearth::cli
