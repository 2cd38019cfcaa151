#pragma once

#include <cstddef>
#include <string_view>

namespace hearth::pool {

/// The most devices that one sandbox can have.
inline constexpr std::size_t kMostGpus = 16;

/// True for "GPU-" or "MIG-" and a uuid in lower-case hex, as drivers since 470 name devices.
/// Source: NVIDIA's MIG User Guide, "CUDA Device Enumeration".
inline bool isGpuUuid(std::string_view text) {
    constexpr std::string_view kShape = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
    if (!text.starts_with("GPU-") && !text.starts_with("MIG-")) return false;
    text.remove_prefix(4);
    if (text.size() != kShape.size()) return false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        const bool hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
        if (kShape[i] == '-' ? c != '-' : !hex) return false;
    }
    return true;
}

}  // namespace hearth::pool
