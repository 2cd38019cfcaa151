#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::broker {

/// True for a path as archives have them: relative, of segments that begin with no dot, without
/// blanks, at most 400 bytes.
bool isAptPath(std::string_view path);

/// The entries of a suite's Release file for the index files of some components.
struct AptRelease {
    struct File {
        std::string sha256;  ///< lower-case hex
        std::string sha512;  ///< empty where it is not told
        std::uint64_t size = 0;
    };
    /// By their path beneath the suite, "main/binary-amd64/Packages.gz".
    std::map<std::string, File, std::less<>> files;
    /// Index files can also be asked for by their hash.
    bool by_hash = false;

    /// The file of a path, or of "DIRECTORY/by-hash/SHA256/HEX"; null if there is none.
    const std::pair<const std::string, File>* find(std::string_view path) const;
};

/// Reads a Release, or the signed part of an InRelease. The client checks the signature, since it
/// has the key. Throws Refused if it is no such file or has no SHA256 section.
AptRelease parseAptRelease(std::string_view text, const std::vector<std::string>& components);

}  // namespace hearth::broker
