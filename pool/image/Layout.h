#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hearth::pool::image {

/// The position of the hexadecimal digits in a digest, after "sha256:".
inline constexpr std::size_t kHexAt = 7;

/// The facts of the one image in an OCI layout.
struct Layout {
    std::string digest;  ///< of the manifest, "sha256:…"
    std::string tag;     ///< its name in the index; may be empty
    std::string config;  ///< the digest of the image's configuration; empty if there is none
    std::uint64_t stored_bytes = 0;  ///< all layers as they are stored
    std::size_t layers = 0;
};

/// The image's own settings, as its configuration has them.
struct ImageConfig {
    std::vector<std::string> env;  ///< "NAME=value"
    std::string workdir;
    std::string user;
    std::vector<std::string> entrypoint;  ///< never run, only shown
    std::string architecture;
    std::string created;
};

/// Reads `<path>/index.json` and the manifest: the only one, or the one tagged "latest" or `name`.
/// Throws Error(NotFound) if there is no layout, Error(InvalidArgument) if it is not understood.
Layout readLayout(const std::string& path, const std::string& name);

/// Returns the image's configuration; empty settings if it has none. Throws Error(InvalidArgument)
/// if it is damaged.
ImageConfig readImageConfig(const std::string& path, const Layout& layout);

}  // namespace hearth::pool::image
