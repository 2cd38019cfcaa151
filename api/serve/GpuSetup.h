#pragma once

#include "api/config/ServeConfig.h"
#include "pool/gpu/NvidiaGpus.h"

namespace hearth::program {

/// The options for a look at this machine's GPUs. Started by root, the helper becomes the server's
/// account, so that it finds what the server would.
pool::GpuOptions gpuOptions(const cli::ServeConfig& config);

}  // namespace hearth::program
