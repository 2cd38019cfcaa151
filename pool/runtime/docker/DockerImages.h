#pragma once

#include <atomic>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/Mutex.h"
#include "pool/image/ImageStore.h"
#include "pool/runtime/ContainerRuntime.h"
#include "pool/runtime/docker/ImageRecords.h"
#include "pool/runtime/docker/engine/EngineClient.h"

namespace hearth::pool::docker {

/// The facts of a daemon's image that are needed here.
struct EngineImage {
    std::string id;                    ///< "sha256:…", named by content
    std::vector<std::string> volumes;  ///< paths where it declares volumes
    std::vector<std::string> env;      ///< "NAME=value"
    std::string workdir;
};

/// Images for the docker runtime. A name under `<data>/images` is an OCI layout, loaded into the
/// daemon as `hearth/NAME:DIGITS` (the first twelve of its manifest's digest) if the daemon lacks
/// it; any other name is a reference or id that the daemon has, or a reference or digest of a
/// layout. Only fetch() pulls. Images brought into the daemon are recorded, and only those are ever
/// removed. Thread-safe.
class DockerImages {
public:
    /// `engine` must outlive it.
    DockerImages(EngineClient& engine, std::string data_dir);

    /// The folder of the records; it must exist and belong to this server's user.
    static std::string recordsOf(const std::string& data_dir) {
        return data_dir + "/docker-images";
    }

    /// Returns the id of an image; loads it if needed (slow). Throws Error(NotFound) with a hint.
    std::string resolve(const std::string& name, TimePoint until);
    /// The same if nothing has to be loaded, else nullopt.
    std::optional<std::string> ready(const std::string& name, TimePoint until);
    /// Throws Error(NotFound).
    EngineImage inspect(const std::string& id, TimePoint until);
    /// Names that resolve() answers at once, a few hundred at most.
    std::vector<std::string> ready(TimePoint until);

    /// See ContainerRuntime.
    bool same(const std::string& image, const std::string& wanted, TimePoint until);
    std::optional<KnownImage> known(const std::string& wanted, TimePoint until);
    /// Pulls by the digest that the registry reports first, so no tag of the daemon is moved.
    KnownImage fetch(const std::string& reference, TimePoint until);
    void stopFetching() { stopping_ = true; }
    /// Removes recorded images that were replaced or fetched and are not in `wanted`. Images in use
    /// by a container stay until the next call.
    void collect(const std::vector<std::string>& wanted, TimePoint until);

private:
    /// The names that an image has in the daemon.
    struct ImageNames {
        std::string id;
        std::vector<std::string> tags;     ///< "python:3.9-slim"
        std::vector<std::string> digests;  ///< "python@sha256:…"
    };

    bool hasLayout(const std::string& name) const;
    std::optional<image::Image> layoutOf(const std::string& name) const;
    static std::string tagOf(const image::Image& layout);
    std::optional<ImageNames> namesOf(const std::string& reference, TimePoint until);
    std::optional<std::string> idOf(const std::string& reference, TimePoint until);
    /// Finds the id of the image that has this digest in a registry.
    std::optional<std::string> idOfDigest(const std::string& digest, TimePoint until);
    /// Calls resolve() or, if nothing may be loaded, ready().
    std::optional<std::string> lookUp(const std::string& name, TimePoint until, bool may_load);
    std::optional<std::string> loaded(const image::Image& layout, TimePoint until);
    std::string resolveLayout(const image::Image& layout, TimePoint until);
    void load(const std::string& name, const std::string& digest, const std::string& tag,
              TimePoint until);
    void pull(const std::string& repository, const std::string& digest, TimePoint until);
    /// False if the image is in use.
    bool removeName(const std::string& name, TimePoint until);
    bool removeFetched(const std::string& tag, TimePoint until);

    EngineClient& engine_;
    std::string data_dir_;
    image::ImageStore layouts_;
    ImageRecords records_;
    Gate loading_{1};
    std::atomic<bool> stopping_{false};
    Mutex mutex_;
    /// By the pools' names for them.
    std::map<std::string, ImageNames> seen_ HEARTH_GUARDED_BY(mutex_);
};

}  // namespace hearth::pool::docker
