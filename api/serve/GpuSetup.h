#pragma once

#include "api/config/ServeConfig.h"
#include "pool/gpu/NvidiaGpus.h"

namespace hearth::program {

/// What is needed to look at this machine's GPUs. Of root, the helper becomes the server's account,
/// so that it finds what the server would.
pool::GpuOptions gpuOptions(const cli::ServeConfig& config);

}  // namespace hearth::program
