#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/Texts.h"

namespace hearth::controller {

/// Exclusive: whole devices, of one sandbox at a time. Mig: MIG instances, likewise. Shared: whole
/// devices of several sandboxes at once, which the hardware does not isolate from each other.
enum class GpuSharing : std::uint8_t { Exclusive, Mig, Shared };
inline constexpr Texts<GpuSharing, 3> kGpuSharings{{"Exclusive", "Mig", "Shared"}};

/// The GPUs of each sandbox of a pool.
struct GpuSpec {
    std::uint32_t count = 0;            ///< devices; 0: a pool without
    std::vector<std::string> products;  ///< any of them, the first preferred; empty: any at all
    GpuSharing sharing = GpuSharing::Exclusive;
    std::uint32_t shared_by = 4;  ///< with Shared: the most sandboxes of one device

    bool operator==(const GpuSpec&) const = default;
};

/// The GPUs that a claim asks for, by which a pool is chosen.
struct GpuWish {
    std::uint32_t count = 1;
    std::string product = {};  ///< one of the pool's products; empty: any
};

/// The pool's sandboxes have what the claim asks for: exactly so many devices, and only of the
/// product.
bool matches(const GpuSpec& spec, const GpuWish& wish);
/// The words of `text` stand together in `whole`; case does not matter. "H100" is in
/// "NVIDIA H100 80GB HBM3", and "A10" is not in "NVIDIA A100".
bool hasWords(const std::string& whole, const std::string& text);

}  // namespace hearth::controller
