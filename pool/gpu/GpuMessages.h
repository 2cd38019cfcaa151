#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "pool/gpu/GpuHost.h"

namespace hearth::pool::gpu {

/// One look at all devices, as the program hearth-gpu prints it.
struct GpuLook {
    std::string absence = {};  ///< reason why there are no devices; else empty
    std::vector<GpuDevice> devices = {};
    /// By uuid: faults that the driver reports once, and that only its next start ends. Those of a
    /// GPU also apply to its MIG instances.
    std::map<std::string, std::string> lasting = {};
};

/// Encode a message as one line of JSON without its newline.
std::string encodeLook(const GpuLook& look);
std::string encodeScrub(const GpuScrub& scrub);
/// Throw Error(InvalidArgument) that names the fault in the line.
GpuLook decodeLook(std::string_view line);
GpuScrub decodeScrub(std::string_view line);

}  // namespace hearth::pool::gpu
