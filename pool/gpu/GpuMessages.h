#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "pool/gpu/GpuHost.h"

namespace hearth::pool::gpu {

/// One look at all devices, as the program hearth-gpu prints it.
struct GpuLook {
    std::string absence = {};  ///< why there are no devices; else empty
    std::vector<GpuDevice> devices = {};
    /// By uuid: faults that the driver reports once, and that only its next start ends. Those of a
    /// GPU are those of its MIG instances, too.
    std::map<std::string, std::string> lasting = {};
};

/// Both as one line of JSON without its end.
std::string encodeLook(const GpuLook& look);
std::string encodeScrub(const GpuScrub& scrub);
/// Throw Error(InvalidArgument) that says what is wrong with the line.
GpuLook decodeLook(std::string_view line);
GpuScrub decodeScrub(std::string_view line);

}  // namespace hearth::pool::gpu
