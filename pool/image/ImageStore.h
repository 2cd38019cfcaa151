#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/Fd.h"
#include "base/Json.h"
#include "pool/image/ImageFacts.h"
#include "pool/image/Layout.h"
#include "pool/image/Unpack.h"

namespace hearth::pool::image {

/// An image as the store knows it.
struct Image {
    std::string name;
    std::string digest;  ///< "sha256:…" of the manifest
    bool unpacked = false;
    std::string source = {};         ///< what it was imported from; empty: it was built here
    std::string reference = {};      ///< what it was called there: "python:3.9-slim"; may be empty
    std::string source_digest = {};  ///< its digest there, which a copy may change; may be empty
    std::string imported = {};       ///< when, RFC 3339
    bool on_demand = false;          ///< a claim brought it, and it goes when none needs it

    /// Whether a pool or a request means this image: by its name, by the reference that it was
    /// imported under, or by a digest.
    bool is(const std::string& text) const;
};

/// Images of the embedded runtime below one data directory: OCI layouts in `images/<name>`, and for
/// each manifest digest one unpacked tree in `rootfs/<hex>` that all its sandboxes share read-only,
/// and its facts in `rootfs/<hex>.json`. A tree appears whole or not at all. Processes take turns
/// by locks of files. Only for a process with one thread.
class ImageStore {
public:
    explicit ImageStore(std::string data_dir) : data_dir_(std::move(data_dir)) {}

    /// The image that `text` means: a name, "repository:tag" or "…@sha256:…". Throws
    /// Error(NotFound) without such an image, Error(InvalidArgument) if its layout is not
    /// understood.
    Image find(const std::string& text) const;
    /// The digest of find().
    std::string digestOf(const std::string& text) const { return find(text).digest; }
    /// Unpacks it unless that is done; gives the image. Waits for others that unpack.
    Image prepare(const std::string& text) const;
    /// The same, of a layout that is not in its place yet; the caller holds lock().
    void prepareLayout(const std::string& path, const Layout& layout, const UnpackLimits& limits,
                       const Unpacked& told) const;
    /// The tree of a digest; nullopt if it is not unpacked.
    std::optional<std::string> rootfs(const std::string& digest) const;
    /// The facts that its sandboxes inherit; empty if it is not unpacked.
    ImageFacts facts(const std::string& digest) const;
    /// The image's own settings. Throws as find().
    ImageConfig config(const Image& image) const;
    /// Every readable image, by name.
    std::vector<Image> images() const;

    std::string layoutPath(const std::string& name) const { return data_dir_ + "/images/" + name; }
    /// Keeps others from unpacking, importing and collecting while it is held. With `wait` false it
    /// is empty if another one has it.
    Fd lock(bool wait) const;
    /// Removes what an interrupted prepare() left, unless one is under way.
    void removeUnfinished() const;
    /// The trees that sandboxes have as their root; nullopt while that is unknown.
    using InUse = std::function<std::optional<std::set<std::string>>()>;
    /// Removes what killed imports left and every tree that neither an image nor a sandbox needs
    /// (`in_use` is asked again before each removal); gives their digests. Nothing while someone
    /// holds the lock.
    std::vector<std::string> collect(const InUse& in_use) const;

    /// Removes images that claims brought and that none of `wanted` means; gives their names.
    std::vector<std::string> forget(const std::vector<std::string>& wanted) const;

private:
    Image read(const std::string& name) const;
    std::string treePath(const std::string& hex) const { return data_dir_ + "/rootfs/" + hex; }
    std::string rootfsPath(const std::string& digest) const;
    std::vector<std::string> unreferenced() const;
    bool putAside(const std::string& hex) const;
    void putBack(const std::string& hex) const;
    void discard(const std::string& hex) const;
    void clearUnfinished() const;
    void putAllBack() const;
    void clearImports() const;

    std::string data_dir_;
};

}  // namespace hearth::pool::image
