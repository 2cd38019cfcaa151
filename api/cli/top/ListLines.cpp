#include "api/cli/top/ListLines.h"

#include <algorithm>
#include <numeric>
#include <sstream>

#include "api/cli/top/ScreenText.h"

namespace hearth::cli {
namespace {

constexpr std::size_t kGap = 2;
constexpr std::size_t kLeastCut = 6;  ///< columns that a cut text keeps
constexpr std::size_t kMarker = 2;    ///< the cursor's, as colour alone is not enough

std::vector<std::size_t> widthsOf(const TopTable& table, std::size_t columns) {
    std::vector<std::size_t> widths;
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
        std::size_t width = columnsOf(table.columns[i].name);
        for (const TopRow& row : table.rows) width = std::max(width, columnsOf(row.cells[i].text));
        widths.push_back(width);
    }
    const auto total = [&] {
        return std::accumulate(widths.begin(), widths.end(), kMarker) + kGap * (widths.size() - 1);
    };
    while (total() > columns) {
        std::size_t widest = widths.size();
        for (std::size_t i = 0; i < widths.size(); ++i) {
            if (!table.columns[i].shrinks || widths[i] <= kLeastCut) continue;
            if (widest == widths.size() || widths[i] > widths[widest]) widest = i;
        }
        if (widest == widths.size()) break;
        --widths[widest];
    }
    return widths;
}

std::string lineOf(const TopTable& table, const std::vector<std::size_t>& widths,
                   const std::string& marker, const TopRow* row) {
    std::string line = marker;
    for (std::size_t i = 0; i < widths.size(); ++i) {
        const std::string& text = row == nullptr ? table.columns[i].name : row->cells[i].text;
        if (i > 0) line.append(kGap, ' ');
        line += fitted(text, widths[i], table.columns[i].right);
    }
    return line;
}

}  // namespace

Screen listLines(const TopTable& table, const ListWindow& window, std::size_t columns) {
    const std::vector<std::size_t> widths = widthsOf(table, columns);
    Screen lines;
    lines.push_back({{fitted(lineOf(table, widths, "  ", nullptr), columns), CellStyle::Heading}});
    const std::size_t page = std::max<std::size_t>(window.rows, 1);
    const std::size_t first = window.chosen.value_or(0) / page * page;
    for (std::size_t i = first; i < first + window.rows; ++i) {
        if (i >= table.rows.size()) {
            lines.push_back({});
            continue;
        }
        const TopRow& row = table.rows[i];
        const bool chosen = window.chosen == i;
        CellStyle style = row.alarm ? CellStyle::Alarm : CellStyle::Plain;
        if (chosen) style = CellStyle::Selected;
        lines.push_back(
            {{fitted(lineOf(table, widths, chosen ? "> " : "  ", &row), columns), style}});
    }
    return lines;
}

std::vector<std::string> wrapped(const std::string& text, std::size_t columns) {
    std::vector<std::string> lines;
    std::istringstream words(text);
    std::string line;
    for (std::string word; words >> word;) {
        if (!line.empty() && columnsOf(line) + 1 + columnsOf(word) > columns) {
            lines.push_back(std::move(line));
            line.clear();
        }
        line += (line.empty() ? "" : " ") + word;
        if (columnsOf(line) > columns) line = fitted(line, columns);
    }
    if (!line.empty()) lines.push_back(line);
    return lines;
}

}  // namespace hearth::cli
