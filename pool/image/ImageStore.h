#pragma once

#include <optional>
#include <string>
#include <vector>

namespace hearth::pool::image {

/// An image as the store knows it.
struct Image {
    std::string name;
    std::string digest;  ///< "sha256:…" of the manifest
    bool unpacked = false;
};

/// Images of the embedded runtime below one data directory: OCI layouts in `images/<name>`, and for
/// each manifest digest one unpacked tree in `rootfs/<hex>` that all its sandboxes share read-only.
/// A tree appears whole or not at all. Only for a process with one thread; unpack() of different
/// processes must not overlap.
class ImageStore {
public:
    explicit ImageStore(std::string data_dir) : data_dir_(std::move(data_dir)) {}

    /// The manifest that `name` stands for now. Throws Error(NotFound) without such an image,
    /// Error(InvalidArgument) if its layout is not understood.
    std::string digestOf(const std::string& name) const;
    /// Unpacks it unless that is done; gives the digest.
    std::string unpack(const std::string& name) const;
    /// The tree of a digest; nullopt if it is not unpacked.
    std::optional<std::string> rootfs(const std::string& digest) const;
    /// Every readable image, by name.
    std::vector<Image> images() const;
    /// Removes what an interrupted unpack() left.
    void removeUnfinished() const;

private:
    struct Manifest;

    Manifest manifestOf(const std::string& name) const;
    std::string rootfsPath(const std::string& digest) const;

    std::string data_dir_;
};

}  // namespace hearth::pool::image
