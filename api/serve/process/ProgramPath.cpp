#include "api/serve/process/ProgramPath.h"

#include <filesystem>
#include <sstream>

namespace hearth::cli {

namespace fs = std::filesystem;

std::string programPath() {
    return fs::read_symlink("/proc/self/exe").string();
}

std::string besideProgram(const std::string& name) {
    return (fs::read_symlink("/proc/self/exe").parent_path() / name).string();
}

std::string programWord(const std::string& program, const char* path) {
    std::istringstream directories(path == nullptr ? "" : path);
    for (std::string directory; std::getline(directories, directory, ':');) {
        const fs::path found = fs::path(directory) / "hearth";
        std::error_code missing;
        if (!fs::is_regular_file(found, missing)) continue;
        return fs::equivalent(found, program, missing) ? "hearth" : program;
    }
    return program;
}

}  // namespace hearth::cli
