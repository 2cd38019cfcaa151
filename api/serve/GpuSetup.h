#pragma once

#include <memory>
#include <optional>

#include "api/config/ServeConfig.h"
#include "base/host/Instance.h"
#include "pool/gpu/GpuSeat.h"
#include "pool/gpu/NvidiaGpus.h"

namespace hearth::program {

/// Returns the options for a look at this machine's GPUs. Started by root, the helper becomes the
/// server's account, so that it finds the same as the server would.
pool::GpuOptions gpuOptions(const cli::ServeConfig& config);

/// The machine's GPUs, which a server takes before it gives up root.
struct GpuGround {
    std::optional<pool::gpu::GpuSeat> seat;  ///< none if no GPUs are looked for
    pool::gpu::GpuHelper::Started helper;
};
/// Throws std::system_error.
GpuGround prepareGpus(const cli::ServeConfig& config, const Instance& instance);
/// The seat stays in `ground`, which lives as long as the server.
std::unique_ptr<pool::GpuHost> makeGpus(const cli::ServeConfig& config, GpuGround& ground);

}  // namespace hearth::program
