#pragma once

#include <sys/types.h>

#include <string>

namespace hearth::pool::launcher {

/// Why root must not run the program at `path`: it, or a folder on the way to it, could be changed
/// or replaced by another user than root and `owner`. Empty if it may be run: `program` is then
/// where it really is, without symbolic links.
std::string distrustProgram(const std::string& path, uid_t owner, std::string& program);

}  // namespace hearth::pool::launcher
