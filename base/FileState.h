#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>

namespace hearth {

/// Returns a text that changes with a file: with its content, its permissions, and the links that
/// lead to it, like those of a Secret that Kubernetes mounts. All files that cannot be seen have
/// the same text. Reads no content.
inline std::string fileState(const std::string& path) {
    struct stat about {};
    if (::stat(path.c_str(), &about) != 0) about = {};
    std::string text;
    for (const auto part :
         {static_cast<std::int64_t>(about.st_dev), static_cast<std::int64_t>(about.st_ino),
          static_cast<std::int64_t>(about.st_size), static_cast<std::int64_t>(about.st_mtim.tv_sec),
          static_cast<std::int64_t>(about.st_mtim.tv_nsec),
          static_cast<std::int64_t>(about.st_ctim.tv_sec),
          static_cast<std::int64_t>(about.st_ctim.tv_nsec)}) {
        text.append(std::to_string(part)).append(1, ' ');
    }
    return text;
}

}  // namespace hearth
