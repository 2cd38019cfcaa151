#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "pool/gpu/GpuMessages.h"
#include "pool/gpu/nvml/Nvml.h"

namespace hearth::pool::gpu {

/// Looks at all devices again and again: which there are, and whether they are healthy. Blocks for
/// as long as the driver does. One thread.
class NvmlLook {
public:
    explicit NvmlLook(Nvml& nvml) : nvml_(nvml) {}

    /// Never throws for a device: its problem becomes its fault, in words.
    GpuLook look();

private:
    struct Instance {
        std::string uuid;
        std::optional<std::uint32_t> gpu_instance;
    };

    void addGpu(std::uint32_t index, GpuLook& look);
    void addInstances(Nvml::Device device, const GpuDevice& gpu, GpuLook& look);
    void addDevice(GpuDevice device, GpuLook& look);
    void takeXids();
    std::string health(Nvml::Device device) const;

    Nvml& nvml_;
    std::map<std::uint32_t, GpuDevice> seen_;             ///< GPUs of earlier looks, by index
    std::map<std::string, std::vector<Instance>> parts_;  ///< MIG instances, by their GPU
    std::set<std::string> watched_;
    std::map<std::string, std::string> lasting_;
};

/// True for a critical error caused by the device, not by the program that ran on it.
/// Source: NVIDIA, "XID Errors" (docs.nvidia.com/deploy/xid-errors).
bool condemns(std::uint64_t xid) noexcept;

}  // namespace hearth::pool::gpu
