#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "base/tar/TarWriter.h"
#include "pool/runtime/docker/engine/EngineClient.h"

namespace hearth::pool::docker {

/// An image in an OCI layout, converted piece by piece to an archive for `docker load`: nothing is
/// written to disk and no layer is held in memory. Not thread-safe.
class ImageArchive {
public:
    /// `layout` is the folder, `digest` its manifest ("sha256:…"), `tag` the image's new name.
    /// Throws Error(InvalidArgument) for a layout that is not understood.
    ImageArchive(const std::string& layout, const std::string& digest, const std::string& tag);

    /// Writes up to `size` bytes of the archive; returns 0 at its end. Throws Error(Conflict) if a
    /// blob has changed meanwhile.
    std::size_t read(char* out, std::size_t size);

private:
    TarWriter tar_;
    std::vector<std::pair<TarEntry, Fd>> layers_;
    std::size_t at_ = 0;  ///< the next layer; one more: the archive's end
};

/// Makes the image `repository:tag` of a small tree of files. Throws what EngineClient::call()
/// does.
void importRoot(EngineClient& engine, TarWriter& root, const std::string& repository,
                const std::string& tag, TimePoint until);

}  // namespace hearth::pool::docker
