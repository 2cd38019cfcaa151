#pragma once

#include <optional>
#include <string>
#include <vector>

#include "pool/image/LayerTree.h"

namespace hearth::pool::image {

/// Layers below one directory: trees by digest ("sha256:…", of what a layer was made from) that
/// sandboxes share read-only. One appears whole, on the disk, or not at all. Calls for different
/// digests may run at once, also in different processes; of one digest one at a time.
class LayerStore {
public:
    explicit LayerStore(std::string directory) : directory_(std::move(directory)) {}

    /// Where the layer is; nullopt if it is not there.
    std::optional<std::string> find(const std::string& digest) const;
    /// The same, or Error(NotFound).
    std::string require(const std::string& digest) const;
    /// Every layer that is there, sorted.
    std::vector<std::string> all() const;
    /// Unpacks the archive in `tar`, unless the layer exists. Throws as unpackLayer() does, and
    /// Error(InvalidArgument) if the digest is malformed.
    void add(const std::string& digest, int tar, const LayerLimits& limits = {}) const;
    /// Nothing there is fine. The caller knows that nobody has it mounted.
    void remove(const std::string& digest) const;
    /// Leftovers of a crash half-way. Only while nobody adds or removes.
    void removeUnfinished() const;

private:
    std::string path(const std::string& digest) const;

    std::string directory_;
};

}  // namespace hearth::pool::image
