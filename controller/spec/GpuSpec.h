#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/Texts.h"

namespace hearth::controller {

/// Exclusive: whole devices, each for one sandbox at a time. Mig: MIG instances, likewise. Shared:
/// whole devices for several sandboxes at once, not isolated from each other by the hardware.
enum class GpuSharing : std::uint8_t { Exclusive, Mig, Shared };
inline constexpr Texts<GpuSharing, 3> kGpuSharings{{"Exclusive", "Mig", "Shared"}};

/// The GPUs of each sandbox of a pool.
struct GpuSpec {
    std::uint32_t count = 0;            ///< devices; 0: none
    std::vector<std::string> products;  ///< any of these, the first preferred; empty: any product
    GpuSharing sharing = GpuSharing::Exclusive;
    std::uint32_t shared_by = 4;  ///< with Shared: the most sandboxes per device

    bool operator==(const GpuSpec&) const = default;
};

/// The GPUs that a claim asks for; they select its pool.
struct GpuWish {
    std::uint32_t count = 1;
    std::string product = {};  ///< one of the pool's products; empty: any
};

/// True if the pool's sandboxes have what the claim asks for: exactly that many devices, all of the
/// product.
bool matches(const GpuSpec& spec, const GpuWish& wish);
/// True if the words of `text` stand together in `whole`; case does not matter. "H100" is in
/// "NVIDIA H100 80GB HBM3", and "A10" is not in "NVIDIA A100".
bool hasWords(const std::string& whole, const std::string& text);

}  // namespace hearth::controller
