#pragma once

#include <string>
#include <string_view>

namespace hearth {

/// Returns `text` with HTML's special characters escaped, so that it is also safe in attributes.
std::string escapeHtml(std::string_view text);

}  // namespace hearth
