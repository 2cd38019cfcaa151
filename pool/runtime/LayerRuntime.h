#pragma once

#include <string>
#include <vector>

#include "base/Error.h"

namespace hearth::pool {

/// The layers that a runtime mounts over images, by digest. Thread-safe.
class LayerRuntime {
public:
    virtual ~LayerRuntime() = default;

    /// The layers that are here, by digest. Throws Error(Unsupported), in words for an operator,
    /// where sandboxes can have none.
    virtual std::vector<std::string> layers() {
        throw Error(ErrorCode::Unsupported, "sandboxes of this runtime can have no layers");
    }
    /// Makes a layer of the archive in the file `tar`, which is only borrowed; it appears whole or
    /// not at all. Nothing happens where it is there. The archive is not trusted: Error
    /// (InvalidArgument) for one that is refused, DiskFull. One digest one at a time.
    virtual void addLayer(const std::string& digest, int tar) {
        static_cast<void>(digest), static_cast<void>(tar);
        layers();
    }
    /// Removes it; nothing there is fine. No sandbox has it, nor will be created with it meanwhile.
    virtual void removeLayer(const std::string& digest) { static_cast<void>(digest); }
};

}  // namespace hearth::pool
