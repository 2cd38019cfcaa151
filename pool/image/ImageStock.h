#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace hearth::pool::image {

/// The images of a store as layouts; unpacked trees are not counted.
struct ImageStock {
    std::size_t images = 0;
    std::uint64_t bytes = 0;
};

/// Looks at what is there, without a lock: what comes or goes meanwhile counts or not. Never
/// throws.
ImageStock imageStock(const std::string& data_dir) noexcept;

}  // namespace hearth::pool::image
