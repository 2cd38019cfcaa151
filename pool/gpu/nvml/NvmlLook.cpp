#include "pool/gpu/nvml/NvmlLook.h"

#include <algorithm>
#include <array>

#include "pool/spec/GpuUuid.h"

namespace hearth::pool::gpu {
namespace {

constexpr auto kXidWait = std::chrono::milliseconds(10);
constexpr int kMostXidsAtOnce = 256;

// An illegal access or instruction, a timeout, a page fault, an end by request: errors that a
// program causes itself.
constexpr std::array<std::uint64_t, 6> kOfPrograms = {13, 31, 43, 45, 68, 109};

void addFault(std::string& faults, const std::string& fault) {
    if (fault.empty()) return;
    faults += (faults.empty() ? "" : "; ") + fault;
}

}  // namespace

bool condemns(std::uint64_t xid) noexcept {
    return std::ranges::find(kOfPrograms, xid) == kOfPrograms.end();
}

GpuLook NvmlLook::look() {
    GpuLook look;
    std::string failed;
    std::uint32_t count = 0;
    try {
        count = nvml_.count();
    } catch (const NvmlError& e) {
        failed = e.what();
    }
    for (std::uint32_t index = 0; index < count; ++index) {
        try {
            addGpu(index, look);
        } catch (const NvmlError& e) {
            const auto before = seen_.find(index);
            if (before == seen_.end()) {
                addFault(failed, "GPU " + std::to_string(index) + ": " + e.what());
                continue;
            }
            GpuDevice lost = before->second;
            lost.fault = std::string("the driver has lost it: ") + e.what();
            addDevice(std::move(lost), look);
        }
    }
    takeXids();
    look.lasting = lasting_;
    if (look.devices.empty()) {
        look.absence = !failed.empty() ? failed : "NVIDIA's driver is loaded and finds no GPU";
    }
    return look;
}

void NvmlLook::addGpu(std::uint32_t index, GpuLook& look) {
    const Nvml::Device device = nvml_.byIndex(index);
    GpuDevice gpu;
    gpu.uuid = nvml_.uuid(device);
    gpu.product = nvml_.name(device);
    try {
        gpu.memory_bytes = nvml_.memoryBytes(device);
        gpu.split = nvml_.splitIntoInstances(device);
        if (watched_.insert(gpu.uuid).second) nvml_.watchXids(device);
    } catch (const NvmlError& e) {
        watched_.erase(gpu.uuid);
        gpu.fault = e.what();
    }
    addFault(gpu.fault, health(device));
    seen_[index] = gpu;
    addDevice(gpu, look);
    if (gpu.split) addInstances(device, gpu, look);
}

void NvmlLook::addInstances(Nvml::Device device, const GpuDevice& gpu, GpuLook& look) {
    std::vector<Instance> parts;
    try {
        for (const Nvml::Device part : nvml_.instances(device)) {
            GpuDevice instance;
            instance.uuid = nvml_.uuid(part);
            instance.product = gpu.product;
            instance.parent = gpu.uuid;
            instance.profile = nvml_.profile(part);
            instance.memory_bytes = nvml_.memoryBytes(part);
            instance.fault = gpu.fault.empty() ? "" : "its GPU: " + gpu.fault;
            parts.push_back({instance.uuid, nvml_.gpuInstance(part)});
            addDevice(std::move(instance), look);
        }
        parts_[gpu.uuid] = std::move(parts);
    } catch (const NvmlError& e) {
        const auto found = std::ranges::find(look.devices, gpu.uuid, &GpuDevice::uuid);
        if (found != look.devices.end()) {
            addFault(found->fault, std::string("its MIG instances cannot be listed: ") + e.what());
        }
    }
}

void NvmlLook::addDevice(GpuDevice device, GpuLook& look) {
    const auto twin = std::ranges::find(look.devices, device.uuid, &GpuDevice::uuid);
    if (twin != look.devices.end()) {
        addFault(twin->fault, "the driver lists two devices with this uuid");
        return;
    }
    if (!isGpuUuid(device.uuid)) {
        addFault(device.fault,
                 "its uuid is not of the form GPU- or MIG- and 36 digits and dashes, by which a "
                 "device is given out; drivers since release 470 name it so");
    }
    look.devices.push_back(std::move(device));
}

void NvmlLook::takeXids() {
    try {
        for (int i = 0; i < kMostXidsAtOnce; ++i) {
            const std::optional<Nvml::Xid> xid = nvml_.nextXid(i == 0 ? kXidWait : kXidWait / 10);
            if (!xid) return;
            if (!condemns(xid->number)) continue;
            const std::string fault = "XID " + std::to_string(xid->number) +
                                      ", a critical error: reset the GPU, then start hearth again";
            if (!xid->gpu_instance) lasting_[xid->uuid] = fault;
            for (const Instance& part : parts_[xid->uuid]) {
                if (xid->gpu_instance && part.gpu_instance == xid->gpu_instance) {
                    lasting_[part.uuid] = fault;
                }
            }
        }
    } catch (const NvmlError&) {
        return;  // a lost device reports that itself
    }
}

std::string NvmlLook::health(Nvml::Device device) const {
    std::string faults;
    const auto ask = [&faults](const auto& question) {
        try {
            addFault(faults, question());
        } catch (const NvmlError& e) {
            addFault(faults,
                     e.code() == NvmlError::GpuIsLost || e.code() == NvmlError::ResetRequired
                         ? std::string("the driver has lost it: ") + e.what()
                         : std::string("its health is unknown: ") + e.what());
        }
    };
    ask([&] {
        const std::uint64_t errors = nvml_.uncorrectedErrors(device).value_or(0);
        return errors == 0 ? std::string()
                           : std::to_string(errors) +
                                 " uncorrected memory errors (ECC) since the "
                                 "driver was loaded: reset the GPU";
    });
    ask([&] {
        return std::string(nvml_.retiredPagesPending(device)
                               ? "pages of its memory wait to be retired: reset the GPU"
                               : "");
    });
    ask([&] {
        return std::string(nvml_.rowRemappingFailed(device)
                               ? "rows of its memory could not be remapped: replace the GPU"
                               : "");
    });
    return faults;
}

}  // namespace hearth::pool::gpu
