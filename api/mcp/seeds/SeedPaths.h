#pragma once

#include <string>

namespace hearth::mcp::seeds {

/// Returns a seed client's path as a workspace path: S1's /app/results is the root, ".".
std::string pathInWorkspace(const std::string& path);
/// Returns "b" for "a/b" and for "a/b/"; empty for "/".
std::string baseName(const std::string& path);
/// Returns the path of a name in a directory; "" and "." are the root.
std::string joinedPath(const std::string& directory, const std::string& name);

}  // namespace hearth::mcp::seeds
