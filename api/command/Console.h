#pragma once

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "base/Json.h"

namespace hearth::cli {

/// The output of a command. Answers go to `out`, all messages to `err`. Not thread-safe.
struct Console {
    std::ostream& out;
    std::ostream& err;
    bool out_colour = false;
    bool err_colour = false;

    /// "error: …" and, on its own line, "  hint: …".
    void error(std::string_view message, std::string_view hint = {}) const;
    /// A remark that is not the answer.
    void note(std::string_view message) const;
};

enum class Colour { Plain, Red, Green, Yellow, Dim };
/// `text` in that colour, or unchanged if `enabled` is false.
std::string coloured(std::string_view text, Colour colour, bool enabled);
/// Makes foreign text safe for a terminal: characters that it obeys or does not show become '?'
/// (unseenAt()), so that no value can move the cursor, forge a line or imitate another.
std::string printable(std::string_view text);
/// The same line by line: line feeds are kept.
std::string printableLines(std::string_view text);
/// A JSON document for a terminal or a program: the same characters are escaped.
std::string jsonText(const Json& value, int indent = 2);

/// Rows under headings, columns as wide as their widest cell. Cells are made printable.
class Table {
public:
    enum class Align { Left, Right };

    explicit Table(std::vector<std::string> headings) : headings_(std::move(headings)) {}
    /// Columns without an entry are left-aligned.
    Table& align(std::vector<Align> columns) {
        columns_ = std::move(columns);
        return *this;
    }
    /// Missing and empty cells are shown as "-".
    void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
    bool empty() const { return rows_.empty(); }
    std::string text() const;

private:
    std::vector<std::string> headings_;
    std::vector<Align> columns_;
    std::vector<std::vector<std::string>> rows_;
};

}  // namespace hearth::cli
