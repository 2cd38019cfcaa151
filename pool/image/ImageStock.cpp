#include "pool/image/ImageStock.h"

#include <filesystem>

namespace hearth::pool::image {
namespace {

namespace fs = std::filesystem;

std::uint64_t bytesBelow(const fs::path& layout) {
    std::uint64_t bytes = 0;
    std::error_code error;
    for (fs::recursive_directory_iterator at(layout, error), end; !error && at != end;
         at.increment(error)) {
        std::error_code gone;
        if (!at->is_regular_file(gone)) continue;
        const std::uintmax_t size = at->file_size(gone);
        if (!gone) bytes += size;
    }
    return bytes;
}

}  // namespace

ImageStock imageStock(const std::string& data_dir) noexcept {
    ImageStock stock;
    try {
        std::error_code error;
        for (fs::directory_iterator at(data_dir + "/images", error), end; !error && at != end;
             at.increment(error)) {
            std::error_code gone;
            const bool hidden = at->path().filename().string().starts_with(".");
            if (hidden || !fs::exists(at->path() / "index.json", gone)) continue;
            ++stock.images;
            stock.bytes += bytesBelow(at->path());
        }
    } catch (const std::exception&) {  // a name too long for memory: returns the count so far
    }
    return stock;
}

}  // namespace hearth::pool::image
