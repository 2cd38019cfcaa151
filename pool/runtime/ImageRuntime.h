#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/Error.h"

namespace hearth::pool {

/// An image that a runtime has.
struct KnownImage {
    std::string pinned;  ///< means these bytes for ever; resolveImage() and pools take it
    std::string digest;  ///< "sha256:…", the runtime's key of an image
    std::vector<std::string> names;  ///< everything it is called: names, references
};

/// The image to fetch from a registry, and how.
struct ImageFetch {
    std::string reference;
    bool insecure =
        false;  ///< its registry may speak HTTP, or have a certificate that nobody knows
    std::chrono::seconds limit{900};
    /// Takes what a fetch listens on that has no other way out. Without use where a daemon fetches.
    int gateway = -1;
};

/// Where the time of fetching an image went.
struct ImageStages {
    std::chrono::nanoseconds pull{0};
    std::chrono::nanoseconds unpack{0};
};

/// The images of a runtime: those that are here, and those of registries. Thread-safe.
class ImageRuntime {
public:
    virtual ~ImageRuntime() = default;

    /// The manifest digest of an image that is ready to be used; unpacks it if need be (may take
    /// long). Throws Error(NotFound) with a hint for a name that is not there, Unavailable after
    /// stopFetching() if it was not ready.
    virtual std::string resolveImage(const std::string& name) = 0;
    /// The digest of resolveImage() if nothing has to be unpacked for it; else nullopt. Cheap, and
    /// never waits for an image that is being unpacked. Throws Error(NotFound) as resolveImage()
    /// does.
    virtual std::optional<std::string> readyImage(const std::string& name) {
        return resolveImage(name);
    }
    /// Whether `wanted` (of a request) is another name of `image` (of a pool): its name, a
    /// reference or a digest. Cheap once resolveImage() has seen `image`.
    virtual bool sameImage(const std::string& image, const std::string& wanted) {
        return image == wanted;
    }
    /// The image that `wanted` (a name, a reference, a digest) means here; nullopt if it is not
    /// here. Asks no registry.
    virtual std::optional<KnownImage> knownImage(const std::string& wanted) {
        static_cast<void>(wanted);
        return std::nullopt;
    }
    /// Brings an image from its registry; blocks until it is here. Throws Error(NotFound) where its
    /// registry has none, Unavailable where no registry answers or fetches were stopped,
    /// InvalidArgument for one that is refused, DiskFull, Deadline, Unsupported.
    virtual KnownImage fetchImage(const ImageFetch& fetch, ImageStages& stages) {
        static_cast<void>(stages);
        throw Error(ErrorCode::Unsupported, "this runtime fetches no images: " + fetch.reference);
    }
    /// Fetches that are under way, and later ones, end with Unavailable, as does waiting for an
    /// image that is being unpacked: the server stops.
    virtual void stopFetching() {}
    /// Removes images that this instance fetched and that neither `wanted` (images of pools) nor a
    /// sandbox needs; never another instance's. No fetch may be running.
    virtual void collectImages(const std::vector<std::string>& wanted) {
        static_cast<void>(wanted);
    }
};

}  // namespace hearth::pool
