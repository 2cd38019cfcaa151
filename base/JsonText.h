#pragma once

#include <string>
#include <string_view>

namespace hearth {

/// Appends `bytes` as they stand inside the quotes of a JSON string: what is no UTF-8 replaced as
/// by toUtf8(), the rest escaped as by dumpJson(), several times as fast as the two.
void appendJsonText(std::string& out, std::string_view bytes);

}  // namespace hearth
