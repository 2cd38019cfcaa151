#pragma once

#include <optional>
#include <string>
#include <vector>

#include "pool/image/LayerTree.h"

namespace hearth::pool::image {

/// Layers below one directory: trees by digest ("sha256:…", of a layer's inputs) that sandboxes
/// share read-only. A layer appears complete, on disk, or not at all. Calls for different digests
/// may run at once, also in different processes; for one digest, one at a time.
class LayerStore {
public:
    explicit LayerStore(std::string directory) : directory_(std::move(directory)) {}

    /// Returns the layer's path; nullopt if it is missing.
    std::optional<std::string> find(const std::string& digest) const;
    /// The same, but throws Error(NotFound).
    std::string require(const std::string& digest) const;
    /// Returns the digests of all layers, sorted.
    std::vector<std::string> all() const;
    /// Unpacks the archive in `tar`, unless the layer exists. Throws as unpackLayer() does, and
    /// Error(InvalidArgument) if the digest is malformed.
    void add(const std::string& digest, int tar, const LayerLimits& limits = {}) const;
    /// Removes a layer if it exists. The caller knows that nobody has it mounted.
    void remove(const std::string& digest) const;
    /// Removes leftovers of a crash. Only while no add() or remove() runs.
    void removeUnfinished() const;

private:
    std::string path(const std::string& digest) const;

    std::string directory_;
};

}  // namespace hearth::pool::image
