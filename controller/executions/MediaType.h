#pragma once

#include <string>
#include <string_view>

namespace hearth::controller {

/// The media type of a file by its first bytes (as many as there are), else by its name. Pure.
std::string mediaType(std::string_view path, std::string_view head);

}  // namespace hearth::controller
