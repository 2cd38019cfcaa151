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

/// An image with the store's facts about it.
struct Image {
    std::string name;
    std::string digest;  ///< "sha256:…" of the manifest
    bool unpacked = false;
    std::string source = {};         ///< where it was imported from; empty: built here
    std::string reference = {};      ///< its name there: "python:3.9-slim"; may be empty
    std::string source_digest = {};  ///< its digest there, which a copy may change; may be empty
    std::string imported = {};       ///< the time, RFC 3339
    bool on_demand = false;          ///< fetched for a claim, and removed when no claim needs it

    /// True if `text` of a pool or a request means this image: its name, the reference that it was
    /// imported under, or a digest.
    bool is(const std::string& text) const;
};

/// Images of the embedded runtime below one data directory: OCI layouts in `images/<name>`, and per
/// manifest digest one unpacked tree in `rootfs/<hex>` that all its sandboxes share read-only, and
/// its facts in `rootfs/<hex>.json`. A tree appears complete or not at all. Processes exclude each
/// other by file locks. Only for a process with one thread.
class ImageStore {
public:
    explicit ImageStore(std::string data_dir) : data_dir_(std::move(data_dir)) {}

    /// Returns the image that `text` means: a name, "repository:tag" or "…@sha256:…". Throws
    /// Error(NotFound) if there is none, Error(InvalidArgument) if its layout is not
    /// understood.
    Image find(const std::string& text) const;
    /// Returns the digest of find().
    std::string digestOf(const std::string& text) const { return find(text).digest; }
    /// Unpacks the image if needed and returns it. Waits for other unpacking processes.
    Image prepare(const std::string& text) const;
    /// The same for a layout that is not in its place yet; the caller holds lock().
    void prepareLayout(const std::string& path, const Layout& layout, const UnpackLimits& limits,
                       const Unpacked& told) const;
    /// Returns the tree of a digest; nullopt if it is not unpacked.
    std::optional<std::string> rootfs(const std::string& digest) const;
    /// Returns the facts that its sandboxes inherit; empty if it is not unpacked.
    ImageFacts facts(const std::string& digest) const;
    /// Returns the image's own settings. Throws as find().
    ImageConfig config(const Image& image) const;
    /// Returns every readable image, by name.
    std::vector<Image> images() const;

    std::string layoutPath(const std::string& name) const { return data_dir_ + "/images/" + name; }
    /// While held, keeps other processes from unpacking, importing and collecting. With `wait`
    /// false it is empty if another process has it.
    Fd lock(bool wait) const;
    /// Removes leftovers of an interrupted prepare(), unless one is running.
    void removeUnfinished() const;
    /// Returns the trees that sandboxes have as their root; nullopt while that is unknown.
    using InUse = std::function<std::optional<std::set<std::string>>()>;
    /// Removes leftovers of killed imports and every tree that neither an image nor a sandbox needs
    /// (`in_use` is called again before each removal); returns their digests. Does nothing while
    /// another process holds the lock.
    std::vector<std::string> collect(const InUse& in_use) const;

    /// Removes images fetched for claims that no text in `wanted` means; returns their names.
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
