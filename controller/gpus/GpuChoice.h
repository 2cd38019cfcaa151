#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/Error.h"
#include "controller/spec/GpuSpec.h"
#include "pool/gpu/GpuHost.h"

namespace hearth::controller {

/// Where the device stands in the order of preference of `spec.products`; nullopt: it is not what
/// the pool wants. A MIG instance is asked for by its profile or the words of its product.
std::optional<std::size_t> rankOf(const pool::GpuDevice& device, const GpuSpec& spec);

/// The devices, counted by product: "2 of NVIDIA H100 80GB HBM3, 1 of MIG 1g.10gb".
std::string inventoryText(const std::vector<pool::GpuDevice>& devices);

/// The resource that NVIDIA's device plugin has for devices of this kind, with a strategy of MIG
/// that is "mixed" and shared devices renamed (its options migStrategy, renameByDefault).
std::string clusterResourceOf(const GpuSpec& spec);
bool isClusterResource(std::string_view text);
/// As refusalOf(), where a cluster places the pool's sandboxes.
std::optional<FieldError> refusalInCluster(const GpuSpec& spec);

/// Why this machine can never have a sandbox of the pool, with the manifest's field and what is
/// there; nullopt: it can. `absence`: why there are no devices at all.
std::optional<FieldError> refusalOf(const GpuSpec& spec,
                                    const std::vector<pool::GpuDevice>& devices,
                                    const std::string& absence);

}  // namespace hearth::controller
