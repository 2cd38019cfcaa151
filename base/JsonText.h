#pragma once

#include <string>
#include <string_view>

namespace hearth {

/// Appends `bytes` as the inside of a JSON string: invalid UTF-8 is replaced as toUtf8() does, the
/// rest is escaped as dumpJson() does, several times as fast as those two.
void appendJsonText(std::string& out, std::string_view bytes);

}  // namespace hearth
