#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hearth::pool::image {

/// Checks a name in the store, which is a folder's name: small letters and digits, and inside also
/// . _ -; at most 64.
bool isImageName(std::string_view text);
/// Checks for "sha256:" and 64 small hex digits.
bool isDigest(std::string_view text);

/// Checks the text after a reference's colon.
bool isTag(std::string_view text);

/// An image's name in registries and in Docker, in one spelling: "docker.io/library/python" is
/// "python", and without tag and digest the tag is "latest".
struct Reference {
    std::string repository;
    std::string tag;     ///< empty only with a digest
    std::string digest;  ///< "sha256:…", or empty

    std::string text() const;
    bool operator==(const Reference&) const = default;
};

/// The host of a repository's registry, "registry.example:5000"; empty for Docker Hub's.
std::string registryOf(std::string_view repository);

/// Reads "repository[:tag][@digest]"; nullopt for anything else, or for over 255 characters.
std::optional<Reference> parseReference(std::string_view text);

/// The rule for an image in a request: a name in the store, a digest or a reference.
inline constexpr const char* kImageRule =
    "must be an image name or reference of up to 255 characters";
bool isImage(std::string_view text);

/// Returns the store's name for an import without a given name: "python:3.9-slim" becomes
/// "python-3.9-slim". Empty if nothing usable is left.
std::string storeName(const Reference& reference);

}  // namespace hearth::pool::image
