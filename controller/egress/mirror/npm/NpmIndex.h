#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "controller/egress/mirror/store/FileCache.h"

namespace hearth::egress {

struct NpmTarball {
    std::string url;
    ContentHash hash;  ///< the strongest hash of the registry that is supported here
};

/// A registry's document of a package ("packument").
struct NpmPackage {
    std::string name;
    /// As clients get it, with the mirror's addresses.
    std::shared_ptr<const std::string> document;
    std::map<std::string, NpmTarball> tarballs;  ///< by file name
    std::size_t bytes() const;
};

/// Returns "name" or "@scope/name"; nullopt if it is no package's name.
std::optional<std::string> npmName(std::string_view decoded_path);

/// Reads a packument that came from `base` and rewrites its tarballs to `<mirror>/<name>/-/<file>`.
/// Throws Refused if it is none. Tarballs without a supported hash (sha512) stay listed, but
/// requests for them are refused.
NpmPackage parseNpm(const std::string& name, const std::string& base, const std::string& body,
                    const std::string& mirror);

}  // namespace hearth::egress
