#pragma once

#include <optional>

#include "api/cli/top/Screen.h"

namespace hearth::cli {

/// The rows of a list that are drawn, and the cursor.
struct ListWindow {
    std::size_t rows = 0;               ///< lines below the heading
    std::optional<std::size_t> chosen;  ///< the row with the cursor; nullopt: no cursor
};

/// A heading and the page of rows with the chosen one, `columns` wide; exactly `rows` + 1 lines.
/// Needs a Utf8Locale, like everything here.
Screen listLines(const TopTable& table, const ListWindow& window, std::size_t columns);
/// Wraps words into lines of at most `columns` columns; a longer word is cut.
std::vector<std::string> wrapped(const std::string& text, std::size_t columns);

}  // namespace hearth::cli
