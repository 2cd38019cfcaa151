#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/Error.h"

namespace hearth::pool {

/// An image that a runtime has.
struct KnownImage {
    std::string pinned;  ///< always means these bytes; resolveImage() and pools accept it
    std::string digest;  ///< "sha256:…", the runtime's key of the image
    std::vector<std::string> names;  ///< all its names and references
};

/// The image to fetch from a registry, with the options of the fetch.
struct ImageFetch {
    std::string reference;
    bool insecure =
        false;  ///< its registry may speak HTTP, or have a certificate of an unknown authority
    std::chrono::seconds limit{900};
    /// Socket that receives the listeners of a fetch without a network. Unused if a daemon fetches.
    int gateway = -1;
};

/// The time of each stage of fetching an image.
struct ImageStages {
    std::chrono::nanoseconds pull{0};
    std::chrono::nanoseconds unpack{0};
};

/// The images of a runtime: present ones, and those of registries. Thread-safe.
class ImageRuntime {
public:
    virtual ~ImageRuntime() = default;

    /// Returns the manifest digest of an image that is ready for use; unpacks it first if needed
    /// (may take long). Throws Error(NotFound) with a hint for an unknown name, Unavailable after
    /// stopFetching() if the image was not ready.
    virtual std::string resolveImage(const std::string& name) = 0;
    /// Returns the digest of resolveImage() if nothing has to be unpacked for it; else nullopt.
    /// Cheap, and never waits for an image that is being unpacked. Throws Error(NotFound) like
    /// resolveImage().
    virtual std::optional<std::string> readyImage(const std::string& name) {
        return resolveImage(name);
    }
    /// Checks whether `wanted` (from a request) also names `image` (of a pool): its name, a
    /// reference or a digest. Cheap once resolveImage() has seen `image`.
    virtual bool sameImage(const std::string& image, const std::string& wanted) {
        return image == wanted;
    }
    /// Returns the image that `wanted` (a name, a reference, a digest) means here; nullopt if it is
    /// not here. Asks no registry.
    virtual std::optional<KnownImage> knownImage(const std::string& wanted) {
        static_cast<void>(wanted);
        return std::nullopt;
    }
    /// Fetches an image from its registry; blocks until it is here. Throws Error(NotFound) if its
    /// registry lacks it, Unavailable if no registry answers or fetches were stopped,
    /// InvalidArgument for an image that is refused, DiskFull, Deadline, Unsupported.
    virtual KnownImage fetchImage(const ImageFetch& fetch, ImageStages& stages) {
        static_cast<void>(stages);
        throw Error(ErrorCode::Unsupported, "this runtime fetches no images: " + fetch.reference);
    }
    /// Called when the server stops: present and later fetches end with Unavailable, and so does
    /// waiting for an image that is being unpacked.
    virtual void stopFetching() {}
    /// Removes images that this instance fetched and that neither `wanted` (images of pools) nor a
    /// sandbox needs; never another instance's. No fetch may be running.
    virtual void collectImages(const std::vector<std::string>& wanted) {
        static_cast<void>(wanted);
    }
};

}  // namespace hearth::pool
