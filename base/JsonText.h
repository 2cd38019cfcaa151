#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace hearth {

/// Appends `bytes` as the inside of a JSON string: invalid UTF-8 is replaced as toUtf8() does, the
/// rest is escaped as dumpJson() does, several times as fast as those two.
void appendJsonText(std::string& out, std::string_view bytes);

/// The first character of valid UTF-8, as bytes; empty at the end.
std::string_view firstCharacter(std::string_view text);
/// The code point of a character.
char32_t codePointOf(std::string_view character);
/// The length in bytes of a character at the beginning of `text` that a terminal obeys or does not
/// show: a control character, a change of direction, a character without width that is no mark, a
/// variation, a tag, a filler, private use. 0 if there is none.
std::size_t unseenAt(std::string_view text);
/// Appends the escape of a character in a JSON string: one or two times \uXXXX.
void appendEscape(std::string& out, char32_t point);

}  // namespace hearth
