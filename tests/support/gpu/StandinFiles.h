#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

/// The state of the stand-in libraries: the folder that HEARTH_GPU_STANDIN names. README.md beside
/// this file lists its files. Both libraries read it at each call.
namespace hearth::standin {

using Path = std::filesystem::path;

inline Path root() {
    const char* folder = std::getenv("HEARTH_GPU_STANDIN");
    return folder == nullptr ? "/nonexistent" : folder;
}

inline bool there(const Path& path) {
    std::error_code none;
    return std::filesystem::exists(path, none);
}

/// Returns a file's text without line ends; nullopt if there is none.
inline std::optional<std::string> text(const Path& path) {
    std::ifstream in(path);
    if (!in) return std::nullopt;
    std::string all{std::istreambuf_iterator<char>(in), {}};
    while (!all.empty() && all.back() == '\n') all.pop_back();
    return all;
}

inline std::uint64_t number(const Path& path, std::uint64_t otherwise) {
    const std::optional<std::string> found = text(path);
    return found && !found->empty() ? std::stoull(*found) : otherwise;
}

/// Blocks for as long as the file exists.
inline void hangWhile(const Path& path) {
    while (there(path)) ::usleep(5'000);
}

/// Returns the paths "NAME0", "NAME1", … without a gap.
inline std::vector<Path> numbered(const Path& folder, const std::string& name) {
    std::vector<Path> all;
    for (int i = 0; there(folder / (name + std::to_string(i))); ++i) {
        all.push_back(folder / (name + std::to_string(i)));
    }
    return all;
}

/// Returns the folders of all devices: GPUs, and their MIG instances if they have some.
inline std::vector<Path> allDevices() {
    std::vector<Path> all;
    for (const Path& gpu : numbered(root(), "gpu")) {
        all.push_back(gpu);
        for (const Path& instance : numbered(gpu, "mig")) all.push_back(instance);
    }
    return all;
}

}  // namespace hearth::standin
