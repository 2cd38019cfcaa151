#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/Texts.h"

namespace hearth::agent {

/// How long a file operation may go without progress; one that transfers no file takes no longer in
/// all.
inline constexpr std::chrono::seconds kDataPatience{10};

enum class FileType : std::uint8_t { File, Directory, Symlink, Other };

inline constexpr Texts<FileType, 4> kFileTypes{{"file", "directory", "symlink", "other"}};

/// The facts of one file, as an agent reports them.
struct FileStat {
    std::string path;
    FileType type = FileType::File;
    std::uint64_t size = 0;
    unsigned mode = 0;
    std::int64_t modified_unix_ms = 0;
    std::string target;  ///< of a symlink
    std::string etag;
};

struct FileList {
    std::vector<FileStat> items;
    std::string next;  ///< pass as `after`; empty at the end
};

struct FileChanges {
    std::vector<FileStat> items;
    bool more = false;  ///< there may be others: too many, or a tree too large or too deep
};

/// The content of an unpacked archive.
struct ArchiveCount {
    std::uint64_t files = 0;
    std::uint64_t directories = 0;
    std::uint64_t links = 0;
    std::uint64_t bytes = 0;
};

}  // namespace hearth::agent
