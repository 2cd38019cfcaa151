#pragma once

#include <string>
#include <vector>

#include "base/Error.h"

namespace hearth::pool {

/// The layers that a runtime mounts over images, by digest. Thread-safe.
class LayerRuntime {
public:
    virtual ~LayerRuntime() = default;

    /// Returns the digests of the layers that are here. Throws Error(Unsupported), with a text for
    /// an operator, if sandboxes can have no layers.
    virtual std::vector<std::string> layers() {
        throw Error(ErrorCode::Unsupported, "sandboxes of this runtime can have no layers");
    }
    /// Makes a layer from the archive in the file `tar`, which stays the caller's. The layer
    /// appears complete or not at all. Does nothing if it exists. The archive is not trusted:
    /// Error(InvalidArgument) for a refused one, DiskFull. One call at a time per digest.
    virtual void addLayer(const std::string& digest, int tar) {
        static_cast<void>(digest), static_cast<void>(tar);
        layers();
    }
    /// Removes it if it exists. No sandbox may have it or be created with it meanwhile.
    virtual void removeLayer(const std::string& digest) { static_cast<void>(digest); }
};

}  // namespace hearth::pool
