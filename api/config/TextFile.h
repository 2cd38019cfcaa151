#pragma once

#include <cstddef>
#include <string>

namespace hearth::cli {

/// Returns the whole file, or standard input for "-". Throws std::system_error if it cannot be read
/// and UsageError above `limit` bytes.
std::string readTextFile(const std::string& path, std::size_t limit);
/// Returns all bytes until a descriptor's end, with the same limit; `name` is for messages.
std::string readToEnd(int fd, const std::string& name, std::size_t limit);

}  // namespace hearth::cli
