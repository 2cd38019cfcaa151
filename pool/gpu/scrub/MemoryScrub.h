#pragma once

#include <chrono>
#include <string>

#include "pool/gpu/GpuHost.h"
#include "pool/gpu/nvml/Nvml.h"

namespace hearth::pool::gpu {

/// One scrub of one device.
struct ScrubOrder {
    std::string uuid;
    std::string cuda = "libcuda.so.1";
    std::chrono::milliseconds process_wait{10'000};  ///< for the last user's processes to end
};

/// Waits until no process uses the device, then overwrites all memory that a program can obtain on
/// it, reads it back and compares, and fills it with zeros. Blocks for as long as the driver does;
/// never throws. Only once in the life of a process.
GpuScrub scrubDevice(const Nvml& nvml, const ScrubOrder& order);

}  // namespace hearth::pool::gpu
