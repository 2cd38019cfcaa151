#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace hearth::tar {

/// The length of the valid UTF-8 sequence at the start of `bytes`, 0 if there is none.
std::size_t utf8Length(std::string_view bytes) noexcept;
/// Returns `bytes` with invalid UTF-8 replaced by U+FFFD.
std::string toUtf8(std::string_view bytes);

}  // namespace hearth::tar
