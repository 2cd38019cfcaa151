#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/Fd.h"

namespace hearth::pool::docker {

/// An image in an OCI layout as the archive that `docker load` takes, piece by piece: nothing is
/// written to disk and no layer is held in memory. Not thread-safe.
class ImageArchive {
public:
    /// `layout` is the folder, `digest` its manifest ("sha256:…"), `tag` the name the image gets.
    /// Throws Error(InvalidArgument) for a layout that is not understood.
    ImageArchive(const std::string& layout, const std::string& digest, const std::string& tag);

    /// Up to `size` bytes of the archive; 0 at its end. Throws std::runtime_error if a blob changes
    /// on the way.
    std::size_t read(char* out, std::size_t size);

private:
    struct Part {
        std::string text;  ///< header or small file
        Fd file = Fd();    ///< then this many bytes of it
        std::uint64_t bytes = 0;
        std::uint64_t padding = 0;
    };
    void addText(const std::string& name, const std::string& text);
    void addFile(const std::string& name, const std::string& path);

    std::vector<Part> parts_;
    std::size_t at_ = 0;
    std::uint64_t done_ = 0;  ///< of the part at_
};

}  // namespace hearth::pool::docker
