#pragma once

#include <optional>
#include <string>
#include <vector>

namespace hearth::pool::image {

/// The kind of a tar archive, found by the names in it.
struct Archive {
    enum class Kind { Docker, Oci, Other, Compressed };
    Kind kind = Kind::Other;
    std::string program;            ///< the one that unpacks a compressed archive: "gzip"
    std::size_t images = 0;         ///< of a Docker archive
    std::vector<std::string> tags;  ///< of a Docker archive: of all its images
};

/// Reads the headers of a tar archive, and its list of images if `docker save` wrote it. An archive
/// with both lists counts as Docker's. A compressed one is not read further. Throws
/// std::system_error if it cannot be read.
Archive inspectArchive(const std::string& path);

}  // namespace hearth::pool::image
