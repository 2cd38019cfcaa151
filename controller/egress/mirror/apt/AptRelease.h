#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::broker {

/// True for a path as archives have it: relative, no segment begins with a dot, no blanks, at most
/// 400 bytes.
bool isAptPath(std::string_view path);

/// The entries of a suite's Release file for the index files of the given components.
struct AptRelease {
    struct File {
        std::string sha256;  ///< lower-case hex
        std::string sha512;  ///< empty if it is not given
        std::uint64_t size = 0;
    };
    /// Keyed by the path below the suite, "main/binary-amd64/Packages.gz".
    std::map<std::string, File, std::less<>> files;
    /// Index files can also be requested by their hash.
    bool by_hash = false;

    /// Finds a file by its path or by "DIRECTORY/by-hash/SHA256/HEX" (or SHA512); null if absent.
    const std::pair<const std::string, File>* find(std::string_view path) const;
};

/// Reads a Release, or the signed part of an InRelease. The client checks the signature, because it
/// has the key. Throws Refused if the text is no such file or has no SHA256 section.
AptRelease parseAptRelease(std::string_view text, const std::vector<std::string>& components);

}  // namespace hearth::broker
