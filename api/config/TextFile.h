#pragma once

#include <cstddef>
#include <string>

namespace hearth::cli {

/// The whole file, or standard input for "-". Throws std::system_error if it cannot be read and
/// UsageError past `limit` bytes.
std::string readTextFile(const std::string& path, std::size_t limit);
/// Everything until the end of a descriptor, with the same limit; `name` is for messages.
std::string readToEnd(int fd, const std::string& name, std::size_t limit);

}  // namespace hearth::cli
