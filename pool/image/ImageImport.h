#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "pool/image/ImageStore.h"
#include "pool/image/Unpack.h"

namespace hearth::pool::image {

/// The origin of an image.
struct ImageSource {
    enum class Kind { Layout, Archive, Daemon, Registry };
    Kind kind = Kind::Archive;
    std::string place;      ///< a path, or the reference in a daemon or registry
    std::string transport;  ///< skopeo's name of it if given: "oci-archive"; else empty
};

/// Parses "docker-daemon:REF", "docker://REF", "oci:DIR", "oci-archive:FILE",
/// "docker-archive:FILE", or the path of a directory or archive. Throws Error(InvalidArgument) for
/// a bad reference and Error(NotFound) for a path that does not exist.
ImageSource parseSource(const std::string& text);

struct ImportRequest {
    std::string source;
    std::string name;  ///< in the store; empty: derived from the reference, or from the file's name
    std::string which;  ///< the image to take from an archive with several; empty: its only one
    UnpackLimits limits = {};
    std::string docker_host = {};  ///< the daemon: "unix:///…", "tcp://…"; empty: the usual one
    /// Extra variables for skopeo: proxies and the like.
    std::vector<std::string> environment = {};
    /// Fetched from a registry for a claim: skopeo runs as a user that exists nowhere else, the
    /// name contains the digest, and an image that is already here stays unchanged.
    bool on_demand = false;
    /// The registry may speak HTTP, or have a certificate of an unknown authority.
    bool insecure = false;
    std::chrono::seconds limit{3600};  ///< for the copying
};

struct ImportResult {
    Image image;
    std::string before;                    ///< the name's earlier digest; empty: it is new
    std::chrono::nanoseconds copied{0};    ///< how long the copying took
    std::chrono::nanoseconds unpacked{0};  ///< how long the unpacking took
};

/// Called with the present step, and the bytes that it has handled so far (0 at its beginning).
using ImportProgress = std::function<void(const std::string& step, std::uint64_t bytes)>;

/// Brings an image into the store: skopeo copies it beside its place; it is unpacked, checked, and
/// then moved there by one rename. Until then an image of that name is unchanged; a failure or an
/// interruption leaves nothing (the next import removes leftovers of a killed one). Waits for
/// another import or build of the name. Throws Error: InvalidArgument for a bad name or an unusable
/// image, NotFound, DiskFull, Deadline, Unsupported without skopeo or umoci. Only for root in a
/// process with one thread.
ImportResult importImage(const std::string& data_dir, const ImportRequest& request,
                         const ImportProgress& progress);

/// Removes an image from the store. The caller must know that it is not in use. Throws as
/// ImageStore::find().
void removeImage(const std::string& data_dir, const std::string& name);

}  // namespace hearth::pool::image
