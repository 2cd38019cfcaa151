#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/Error.h"
#include "controller/spec/GpuSpec.h"
#include "pool/gpu/GpuHost.h"

namespace hearth::controller {

/// The device's rank in the order of preference of `spec.products`; nullopt: it does not fit
/// the pool. A MIG instance is named by its profile or the words of its product.
std::optional<std::size_t> rankOf(const pool::GpuDevice& device, const GpuSpec& spec);

/// Counts the devices by product: "2 of NVIDIA H100 80GB HBM3, 1 of MIG 1g.10gb".
std::string inventoryText(const std::vector<pool::GpuDevice>& devices);

/// The resource of NVIDIA's device plugin for devices of this kind, if its strategy for MIG
/// is "mixed" and shared devices are renamed (its options migStrategy, renameByDefault).
std::string clusterResourceOf(const GpuSpec& spec);
bool isClusterResource(std::string_view text);
/// Like refusalOf(), if a cluster places the pool's sandboxes.
std::optional<FieldError> refusalInCluster(const GpuSpec& spec);

/// Returns why this machine can never have a sandbox of the pool, with the manifest's field and the
/// existing devices; nullopt: it can. `absence`: why there are no devices at all.
std::optional<FieldError> refusalOf(const GpuSpec& spec,
                                    const std::vector<pool::GpuDevice>& devices,
                                    const std::string& absence);

}  // namespace hearth::controller
