#pragma once

#include <string>
#include <string_view>

namespace hearth {

/// Appends `bytes` as the inside of a JSON string: invalid UTF-8 is replaced as by toUtf8(), the
/// rest escaped as by dumpJson(), several times as fast as those two.
void appendJsonText(std::string& out, std::string_view bytes);

}  // namespace hearth
