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

/// Where an image comes from.
struct ImageSource {
    enum class Kind { Layout, Archive, Daemon, Registry };
    Kind kind = Kind::Archive;
    std::string place;      ///< a path, or the reference in a daemon or registry
    std::string transport;  ///< skopeo's word where it was given: "oci-archive"; else empty
};

/// "docker-daemon:REF", "docker://REF", "oci:DIR", "oci-archive:FILE", "docker-archive:FILE", or
/// the path of a directory or archive. Throws Error(InvalidArgument) for a bad reference and
/// Error(NotFound) for a path where nothing is.
ImageSource parseSource(const std::string& text);

struct ImportRequest {
    std::string source;
    std::string name;  ///< in the store; empty: follows from the reference, or from the file's name
    std::string which;  ///< which image of an archive that has several; empty: its only one
    UnpackLimits limits = {};
    std::string docker_host = {};  ///< of the daemon: "unix:///…", "tcp://…"; empty: the usual one
    /// Extra variables for skopeo: proxies and the like.
    std::vector<std::string> environment = {};
    /// From a registry for a claim: skopeo is no user of this machine, the name is made of the
    /// digest, and an image that is here already is left as it is.
    bool on_demand = false;
    /// The registry may speak HTTP, or have a certificate that nobody knows.
    bool insecure = false;
    std::chrono::seconds limit{3600};  ///< for the copying
};

struct ImportResult {
    Image image;
    std::string before;                    ///< the digest that the name stood for; empty: it is new
    std::chrono::nanoseconds copied{0};    ///< how long that took
    std::chrono::nanoseconds unpacked{0};  ///< the same
};

/// Told what is done now, and how many bytes that has brought so far (0 at its beginning).
using ImportProgress = std::function<void(const std::string& step, std::uint64_t bytes)>;

/// Brings an image into the store: copied by skopeo beside its place, unpacked, checked, and then
/// put there by one rename. Until then an image of that name stays as it was; a failure or an
/// interruption leaves nothing (what a killed import left goes with the next one). Another import
/// or build of the name is waited for. Throws Error: InvalidArgument for a bad name or an image
/// that cannot be used, NotFound, DiskFull, Deadline, Unsupported without skopeo or umoci. Only for
/// root in a process with one thread.
ImportResult importImage(const std::string& data_dir, const ImportRequest& request,
                         const ImportProgress& progress);

/// Takes an image out of the store. Whether it is in use is the caller's to know. Throws as
/// ImageStore::find().
void removeImage(const std::string& data_dir, const std::string& name);

}  // namespace hearth::pool::image
