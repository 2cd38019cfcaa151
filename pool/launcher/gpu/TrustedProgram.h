#pragma once

#include <sys/types.h>

#include <string>

namespace hearth::pool::launcher {

/// Returns the reason why root must not run the program at `path`: a user other than root and
/// `owner` could change or replace it, or a folder on the way to it. Empty if it may be run:
/// `program` is then its real path, without symbolic links.
std::string distrustProgram(const std::string& path, uid_t owner, std::string& program);

}  // namespace hearth::pool::launcher
