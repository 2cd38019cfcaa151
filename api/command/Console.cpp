#include "api/command/Console.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/JsonText.h"

namespace hearth::cli {
namespace {

/// The columns that a text takes, counted in code points: enough for Hearth's own texts.
std::size_t width(std::string_view text) {
    return static_cast<std::size_t>(std::ranges::count_if(
        text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

template <typename Write>
std::string withoutUnseen(const std::string& text, const Write& write) {
    std::string out;
    out.reserve(text.size());
    for (std::size_t at = 0; at < text.size();) {
        const std::string_view rest = std::string_view(text).substr(at);
        const std::size_t length = unseenAt(rest);
        if (length == 0) {
            out += rest[0];
        } else {
            out += write(rest.substr(0, length));
        }
        at += std::max<std::size_t>(length, 1);
    }
    return out;
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
    return withoutUnseen(toUtf8(text), [](std::string_view) { return '?'; });
}

std::string printableLines(std::string_view text) {
    std::string out;
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        out += printable(text.substr(0, end));
        if (end == std::string_view::npos) break;
        out += '\n';
        text.remove_prefix(end + 1);
    }
    return out;
}

std::string jsonText(const Json& value, int indent) {
    const std::string text = value.dump(indent, ' ', false, Json::error_handler_t::replace);
    return withoutUnseen(text, [](std::string_view control) {
        if (control == "\n") return std::string("\n");  // between lines; inside a string it is \\n
        std::string escape;
        appendEscape(escape, codePointOf(control));
        return escape;
    });
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
