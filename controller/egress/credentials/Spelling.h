#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace hearth::egress {

/// One way to read the bytes from `begin` to `end`: as one character, or as a break within a text,
/// which stands for no character.
struct Spelling {
    std::size_t begin = 0;
    std::size_t end = 0;
    unsigned char character = 0;  ///< printable ASCII; 0: a break
};

/// The most bytes that one character takes, and one break with the indentation after it.
constexpr std::size_t kLongestSpelling = 12;  // \u{00000041}
constexpr std::size_t kLongestIndent = 16;
constexpr std::size_t kLongestBreak = kLongestSpelling + kLongestIndent;

/// Adds every reading of the bytes before `end` that ends there. A character: as itself, + for a
/// blank, after a backslash (\c, octal, \xHH, \uHHHH, \u{…}, \UHHHHHHHH, as CSS has it), %HH,
/// %uHHHH, =HH, an entity of HTML with or without its semicolon. A break: the end of a line (plain,
/// after = or a backslash, or spelled), its indentation, <br>, an invisible character (a soft
/// hyphen, a space of no width), or the zeros of wide characters. Looks at kLongestBreak bytes at
/// most.
void addSpellings(std::string_view text, std::size_t end, std::vector<Spelling>& out);

}  // namespace hearth::egress
