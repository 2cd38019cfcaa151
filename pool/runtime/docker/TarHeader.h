#pragma once

#include <cstdint>
#include <string>

namespace hearth::pool::docker {

/// What a file or folder of an archive is.
struct TarEntry {
    std::string name;  ///< at most 99 bytes
    std::uint64_t size = 0;
    unsigned mode = 0444;
    bool folder = false;
};

/// A header of the format ustar, owned by root. Sizes beyond eight octal gigabytes are written in
/// base 256.
std::string tarHeader(const TarEntry& entry);
/// How many zero bytes follow that many bytes of content.
std::uint64_t tarPadding(std::uint64_t bytes);
/// What an archive ends with.
std::string tarEnd();

}  // namespace hearth::pool::docker
