#pragma once

#include <string>

namespace hearth::mcp::seeds {

/// A path as the seeds' clients write it, in the workspace: S1's /app/results is its root, ".".
std::string pathInWorkspace(const std::string& path);
/// "b" of "a/b" and of "a/b/"; empty for "/".
std::string baseName(const std::string& path);
/// A name in a directory, where "" and "." are the root.
std::string joinedPath(const std::string& directory, const std::string& name);

}  // namespace hearth::mcp::seeds
