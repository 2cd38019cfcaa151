#pragma once

#include <string>

namespace hearth::cli {

/// Returns the absolute path of the running program. Throws system_error if /proc is not mounted.
std::string programPath();

/// Returns the path of a program that is installed in the same folder as this one.
std::string besideProgram(const std::string& name);

/// Returns the name under which a shell with this PATH finds `program`: "hearth" if the first one
/// on it is that file, else the path itself. `path` is a list separated by colons; may be null.
std::string programWord(const std::string& program, const char* path);

}  // namespace hearth::cli
