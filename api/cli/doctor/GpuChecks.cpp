#include "api/cli/doctor/GpuChecks.h"

#include <unistd.h>

#include <memory>

#include "api/serve/GpuSetup.h"
#include "base/Units.h"

namespace hearth::cli {
namespace {

std::string deviceText(const pool::GpuDevice& device) {
    std::string text = device.product + (device.profile.empty() ? "" : " MIG " + device.profile) +
                       " (" + formatSize(static_cast<double>(device.memory_bytes)) + ", " +
                       device.uuid;
    if (device.split) text += ", in MIG mode";
    return text + (device.fault.empty() ? ")" : ", FAULTY: " + device.fault + ")");
}

}  // namespace

Finding judgeGpus(const std::vector<pool::GpuDevice>& devices, const std::string& absence) {
    if (devices.empty()) {
        return allRight("gpus", "none: " + absence + "; pools without GPUs do not need them");
    }
    std::size_t whole = 0;
    std::size_t faulty = 0;
    std::string all;
    for (const pool::GpuDevice& device : devices) {
        if (device.parent.empty()) ++whole;
        if (!device.fault.empty()) ++faulty;
        all += (all.empty() ? "" : ", ") + deviceText(device);
    }
    Finding finding = allRight("gpus", std::to_string(whole) + ": " + all);
    if (faulty > 0) {
        finding.level = Level::Warn;
        finding.fix = "`nvidia-smi -q` says more; the server gives out no faulty GPU";
    }
    return finding;
}

Finding checkGpus(const ServeConfig& config) {
    try {
        const pool::GpuOptions options = program::gpuOptions(config);
        if (::access(options.helper.program.c_str(), X_OK) != 0) {
            return {Level::Warn, "gpus",
                    "hearth-gpu, which looks for them, is missing beside hearth",
                    "cmake --build BUILD-DIRECTORY --target hearth-gpu"};
        }
        const std::unique_ptr<pool::GpuHost> host =
            pool::makeGpuHost(options, pool::gpu::GpuHelper::start(options.helper));
        return judgeGpus(host->devices(), host->absence());
    } catch (const std::exception& e) {
        return {Level::Warn, "gpus", std::string("cannot be looked for: ") + e.what(), ""};
    }
}

}  // namespace hearth::cli
