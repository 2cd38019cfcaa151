#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace hearth::agent {

/// Writes a file that everybody in the sandbox may read, whole or not at all. False if it cannot be
/// written.
bool writeShared(const std::string& path, std::initializer_list<std::string_view> parts);

}  // namespace hearth::agent
