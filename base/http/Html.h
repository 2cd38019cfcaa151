#pragma once

#include <string>
#include <string_view>

namespace hearth {

/// `text` with the characters that mean something in HTML escaped, also in attributes.
std::string escapeHtml(std::string_view text);

}  // namespace hearth
