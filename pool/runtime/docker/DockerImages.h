#pragma once

#include <string>
#include <vector>

#include "pool/image/ImageStore.h"
#include "pool/runtime/docker/EngineClient.h"

namespace hearth::pool::docker {

/// What a daemon's image is to us.
struct EngineImage {
    std::string id;                    ///< "sha256:…", named by content
    std::vector<std::string> volumes;  ///< where it wants volumes
    std::vector<std::string> env;      ///< "NAME=value"
    std::string workdir;
};

/// Images for the docker runtime. A name under `<data>/images` is an OCI layout, loaded into the
/// daemon as `hearth/NAME:DIGITS` (the first twelve of its manifest's digest) when the daemon lacks
/// it; any other name is a reference that the daemon has already. Nothing is ever pulled.
/// Thread-safe.
class DockerImages {
public:
    /// `engine` must outlive it.
    DockerImages(EngineClient& engine, std::string data_dir);

    /// The id of an image, loading it if need be (takes long). Throws Error(NotFound) with a hint.
    std::string resolve(const std::string& name, TimePoint until);
    /// Throws Error(NotFound).
    EngineImage inspect(const std::string& id, TimePoint until);
    /// Names that resolve() answers at once, at most a few hundred.
    std::vector<std::string> ready(TimePoint until);

private:
    bool hasLayout(const std::string& name) const;
    std::optional<std::string> idOf(const std::string& reference, TimePoint until);
    void load(const std::string& name, const std::string& digest, const std::string& tag,
              TimePoint until);

    EngineClient& engine_;
    std::string data_dir_;
    image::ImageStore layouts_;
    Gate loading_{1};
};

}  // namespace hearth::pool::docker
