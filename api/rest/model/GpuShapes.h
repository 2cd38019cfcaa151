#pragma once

#include <vector>

#include "api/rest/schema/Schema.h"
#include "controller/contract/Gpus.h"

namespace hearth::rest {

/// A GPU and its holder.
Schema gpuSchema();
Json gpuJson(const controller::GpuView& view);
/// Devices of one product, as in the capabilities.
Schema gpuProductSchema();
Json gpuProductsJson(const std::vector<controller::GpuProduct>& products);

}  // namespace hearth::rest
