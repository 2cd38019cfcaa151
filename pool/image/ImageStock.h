#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace hearth::pool::image {

/// The images of a store, counted as layouts; unpacked trees are not counted.
struct ImageStock {
    std::size_t images = 0;
    std::uint64_t bytes = 0;
};

/// Counts without a lock, so an image that comes or goes meanwhile may count or not. Never
/// throws.
ImageStock imageStock(const std::string& data_dir) noexcept;

}  // namespace hearth::pool::image
