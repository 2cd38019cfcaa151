#include "api/cli/Console.h"

#include <algorithm>

#include "base/Json.h"

namespace hearth::cli {
namespace {

/// Columns a text takes, counting code points: good enough for what Hearth itself prints.
std::size_t width(std::string_view text) {
    return static_cast<std::size_t>(std::ranges::count_if(
        text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

}  // namespace

void Console::error(std::string_view message, std::string_view hint) const {
    err << coloured("error:", Colour::Red, err_colour) << ' ' << printable(message) << '\n';
    if (!hint.empty()) {
        err << coloured("  hint:", Colour::Dim, err_colour) << ' ' << printable(hint) << '\n';
    }
    err.flush();
}

void Console::note(std::string_view message) const {
    err << printable(message) << '\n';
    err.flush();
}

std::string coloured(std::string_view text, Colour colour, bool enabled) {
    if (!enabled || colour == Colour::Plain) return std::string(text);
    const char* code = "";
    if (colour == Colour::Red) code = "31";
    if (colour == Colour::Green) code = "32";
    if (colour == Colour::Yellow) code = "33";
    if (colour == Colour::Dim) code = "2";
    return "\x1b[" + std::string(code) + "m" + std::string(text) + "\x1b[0m";
}

std::string printable(std::string_view text) {
    const std::string clean = toUtf8(text);
    std::string out;
    out.reserve(clean.size());
    for (std::size_t i = 0; i < clean.size(); ++i) {
        const auto byte = static_cast<unsigned char>(clean[i]);
        // U+0080 to U+009F are control characters too, some terminals obey them.
        const bool c1 = byte == 0xC2U && i + 1 < clean.size() &&
                        static_cast<unsigned char>(clean[i + 1]) < 0xA0U;
        if (c1) ++i;
        out += c1 || byte < 0x20U || byte == 0x7FU ? '?' : clean[i];
    }
    return out;
}

std::string Table::text() const {
    std::vector<std::vector<std::string>> lines{headings_};
    for (const auto& row : rows_) {
        std::vector<std::string> cells;
        for (std::size_t i = 0; i < headings_.size(); ++i) {
            const std::string cell = i < row.size() ? printable(row[i]) : std::string();
            cells.push_back(cell.empty() ? "-" : cell);
        }
        lines.push_back(std::move(cells));
    }
    std::vector<std::size_t> widths(headings_.size(), 0);
    for (const auto& line : lines) {
        for (std::size_t i = 0; i < line.size(); ++i) {
            widths[i] = std::max(widths[i], width(line[i]));
        }
    }
    std::string out;
    for (const auto& line : lines) {
        std::string text;
        for (std::size_t i = 0; i < line.size(); ++i) {
            const std::string padding(widths[i] - width(line[i]), ' ');
            const bool right = i < columns_.size() && columns_[i] == Align::Right;
            if (i > 0) text += "  ";
            text += right ? padding + line[i] : line[i] + padding;
        }
        text.erase(text.find_last_not_of(' ') + 1);
        out += text + "\n";
    }
    return out;
}

}  // namespace hearth::cli
