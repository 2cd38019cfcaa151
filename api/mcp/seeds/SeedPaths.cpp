#include "api/mcp/seeds/SeedPaths.h"

#include <string_view>

namespace hearth::mcp::seeds {

std::string pathInWorkspace(const std::string& path) {
    constexpr std::string_view kSeedRoot = "/app/results";
    if (!path.starts_with(kSeedRoot)) return path;
    std::string_view rest = std::string_view(path).substr(kSeedRoot.size());
    if (!rest.empty() && rest.front() != '/') return path;
    while (rest.starts_with('/')) rest.remove_prefix(1);
    return rest.empty() ? "." : std::string(rest);
}

std::string baseName(const std::string& path) {
    const std::size_t end = path.find_last_not_of('/');
    if (end == std::string::npos) return "";
    const std::string trimmed = path.substr(0, end + 1);
    return trimmed.substr(trimmed.rfind('/') + 1);
}

std::string joinedPath(const std::string& directory, const std::string& name) {
    if (directory.empty() || directory == ".") return name;
    return directory.ends_with('/') ? directory + name : directory + "/" + name;
}

}  // namespace hearth::mcp::seeds
