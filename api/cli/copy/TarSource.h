#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/tar/TarWriter.h"

namespace hearth::cli {

/// A local directory as a tar, made while it is read. Names are relative to the directory. Sockets,
/// devices, FIFOs and what cannot be read are left out and reported. Not thread-safe.
class TarSource {
public:
    /// `follow`: links are replaced by their targets; else they stay links. `left_out` gets each
    /// name that is missing, and the reason. Throws system_error if `directory` cannot be read.
    TarSource(const std::filesystem::path& directory, bool follow,
              std::function<void(const std::string& name, const std::string& why)> left_out);

    /// Reads up to `size` bytes; 0 at the end. Throws system_error if an open file cannot be read,
    /// and Error if it shrank meanwhile.
    std::size_t read(char* out, std::size_t size);
    std::uint64_t files() const { return files_; }

private:
    void next();
    void openDirectory(const std::filesystem::path& directory, const std::string& name);
    void unreadable(const std::string& name, int error);
    void add(const std::filesystem::path& path, const std::string& name);

    const bool follow_;
    std::function<void(const std::string&, const std::string&)> left_out_;
    struct Level {
        std::filesystem::directory_iterator at;
        std::string name;  ///< the directory's name in the archive; empty: the top
    };
    std::vector<Level> levels_;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> inside_;  ///< device and inode of levels
    std::uint64_t files_ = 0;
    bool ended_ = false;
    TarWriter tar_;
};

}  // namespace hearth::cli
