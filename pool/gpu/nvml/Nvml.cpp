#include "pool/gpu/nvml/Nvml.h"

#include <array>

namespace hearth::pool::gpu {
namespace {

constexpr int kNvmlSuccess = 0;
constexpr unsigned kNameSize = 96;      // NVML_DEVICE_NAME_V2_BUFFER_SIZE, and of uuids
constexpr int kUncorrected = 1;         // NVML_MEMORY_ERROR_TYPE_UNCORRECTED
constexpr int kVolatile = 0;            // NVML_VOLATILE_ECC
constexpr unsigned kNoInstance = ~0U;   // for an event without a MIG instance
constexpr unsigned long long kXid = 8;  // nvmlEventTypeXidCriticalError
constexpr unsigned kMostProcesses = 1024;

}  // namespace

Nvml::Nvml(const std::string& library)
    : library_(library, "NVIDIA's management library",
               "install NVIDIA's driver, which brings it (Debian, non-free: nvidia-driver), or "
               "name the library with --gpu-library") {
    library_.need(init_, "nvmlInit_v2");
    library_.need(shutdown_, "nvmlShutdown");
    library_.need(error_string_, "nvmlErrorString");
    library_.need(count_, "nvmlDeviceGetCount_v2");
    library_.need(by_index_, "nvmlDeviceGetHandleByIndex_v2");
    library_.need(by_uuid_, "nvmlDeviceGetHandleByUUID");
    library_.need(uuid_, "nvmlDeviceGetUUID");
    library_.need(name_, "nvmlDeviceGetName");
    library_.need(memory_, "nvmlDeviceGetMemoryInfo");
    library_.need(compute_processes_, "nvmlDeviceGetComputeRunningProcesses_v3",
                  "nvmlDeviceGetComputeRunningProcesses_v2");
    library_.need(graphics_processes_, "nvmlDeviceGetGraphicsRunningProcesses_v3",
                  "nvmlDeviceGetGraphicsRunningProcesses_v2");
    library_.find(mig_mode_, "nvmlDeviceGetMigMode");
    library_.find(most_instances_, "nvmlDeviceGetMaxMigDeviceCount");
    library_.find(instance_, "nvmlDeviceGetMigDeviceHandleByIndex");
    library_.find(attributes_, "nvmlDeviceGetAttributes_v2");
    library_.find(gpu_instance_, "nvmlDeviceGetGpuInstanceId");
    library_.find(ecc_errors_, "nvmlDeviceGetTotalEccErrors");
    library_.find(retired_pending_, "nvmlDeviceGetRetiredPagesPendingStatus");
    library_.find(remapped_rows_, "nvmlDeviceGetRemappedRows");
    library_.find(make_events_, "nvmlEventSetCreate");
    library_.find(event_types_, "nvmlDeviceGetSupportedEventTypes");
    library_.find(register_events_, "nvmlDeviceRegisterEvents");
    library_.find(wait_event_, "nvmlEventSetWait_v2");
    try {
        check(init_(), "nvmlInit_v2");
    } catch (const NvmlError& e) {
        throw std::runtime_error(std::string("NVIDIA's driver does not start: ") + e.what() +
                                 "; nvidia-smi says more");
    }
}

Nvml::~Nvml() {
    shutdown_();
}

void Nvml::check(int result, const char* function) const {
    if (result == kNvmlSuccess) return;
    const char* words = error_string_(result);
    throw NvmlError(result, std::string(function) + ": " +
                                (words == nullptr ? "unknown error" : words) + " (" +
                                std::to_string(result) + ")");
}

/// False if this device or this user cannot ask the question, which is no fault of the device.
bool Nvml::answered(int result, const char* function) const {
    if (result == NvmlError::NotSupported || result == NvmlError::NoPermission) return false;
    check(result, function);
    return true;
}

std::string Nvml::text(int (*get)(Device, char*, unsigned), Device device,
                       const char* function) const {
    std::array<char, kNameSize + 1> buffer{};
    check(get(device, buffer.data(), kNameSize), function);
    return buffer.data();
}

std::uint32_t Nvml::count() const {
    unsigned count = 0;
    check(count_(&count), "nvmlDeviceGetCount_v2");
    return count;
}

Nvml::Device Nvml::byIndex(std::uint32_t index) const {
    Device device = nullptr;
    check(by_index_(index, &device), "nvmlDeviceGetHandleByIndex_v2");
    return device;
}

Nvml::Device Nvml::byUuid(const std::string& uuid) const {
    Device device = nullptr;
    check(by_uuid_(uuid.c_str(), &device), "nvmlDeviceGetHandleByUUID");
    return device;
}

std::string Nvml::uuid(Device device) const {
    return text(uuid_, device, "nvmlDeviceGetUUID");
}

std::string Nvml::name(Device device) const {
    return text(name_, device, "nvmlDeviceGetName");
}

std::uint64_t Nvml::memoryBytes(Device device) const {
    Memory memory{};
    check(memory_(device, &memory), "nvmlDeviceGetMemoryInfo");
    return memory.total;
}

bool Nvml::splitIntoInstances(Device device) const {
    if (mig_mode_ == nullptr) return false;
    unsigned now = 0;
    unsigned pending = 0;
    return answered(mig_mode_(device, &now, &pending), "nvmlDeviceGetMigMode") && now != 0;
}

std::vector<Nvml::Device> Nvml::instances(Device device) const {
    if (most_instances_ == nullptr || instance_ == nullptr) return {};
    unsigned most = 0;
    check(most_instances_(device, &most), "nvmlDeviceGetMaxMigDeviceCount");
    std::vector<Device> found;
    for (unsigned i = 0; i < most; ++i) {
        Device instance = nullptr;
        const int result = instance_(device, i, &instance);
        if (result == NvmlError::NotFound) continue;
        check(result, "nvmlDeviceGetMigDeviceHandleByIndex");
        found.push_back(instance);
    }
    return found;
}

std::string Nvml::profile(Device instance) const {
    constexpr std::string_view kMark = " MIG ";
    const std::string full = name(instance);
    const std::size_t at = full.rfind(kMark);
    if (at != std::string::npos) return full.substr(at + kMark.size());
    Attributes is{};
    if (attributes_ == nullptr || attributes_(instance, &is) != kNvmlSuccess) return {};
    const unsigned long long gib = (is.memory_mib + 1023) / 1024;
    const std::string part = is.compute_slices == is.gpu_slices || is.compute_slices == 0
                                 ? ""
                                 : std::to_string(is.compute_slices) + "c.";
    return part + std::to_string(is.gpu_slices) + "g." + std::to_string(gib) + "gb";
}

std::optional<std::uint32_t> Nvml::gpuInstance(Device instance) const {
    unsigned id = 0;
    if (gpu_instance_ == nullptr || gpu_instance_(instance, &id) != kNvmlSuccess) {
        return std::nullopt;
    }
    return id;
}

std::optional<std::uint64_t> Nvml::uncorrectedErrors(Device device) const {
    if (ecc_errors_ == nullptr) return std::nullopt;
    unsigned long long errors = 0;
    const int result = ecc_errors_(device, kUncorrected, kVolatile, &errors);
    return answered(result, "nvmlDeviceGetTotalEccErrors") ? std::optional(errors) : std::nullopt;
}

bool Nvml::retiredPagesPending(Device device) const {
    if (retired_pending_ == nullptr) return false;
    int pending = 0;
    const int result = retired_pending_(device, &pending);
    return answered(result, "nvmlDeviceGetRetiredPagesPendingStatus") && pending != 0;
}

bool Nvml::rowRemappingFailed(Device device) const {
    if (remapped_rows_ == nullptr) return false;
    unsigned corrected = 0;
    unsigned uncorrected = 0;
    unsigned pending = 0;
    unsigned failed = 0;
    const int result = remapped_rows_(device, &corrected, &uncorrected, &pending, &failed);
    return answered(result, "nvmlDeviceGetRemappedRows") && failed != 0;
}

void Nvml::addProcesses(GetProcesses get, Device device, bool graphics,
                        std::vector<Process>& all) const {
    const char* function =
        graphics ? "nvmlDeviceGetGraphicsRunningProcesses" : "nvmlDeviceGetComputeRunningProcesses";
    // Drivers of release 535 have one more member: there is room for it, and then only the first
    // entry is right.
    std::vector<ProcessInfo> found(2UL * kMostProcesses);
    unsigned count = kMostProcesses;
    const int result = get(device, &count, found.data());
    // Not every device can have a display. If more processes exist than fit, the first are enough.
    if (graphics && result == NvmlError::NotSupported) return;
    if (result != NvmlError::InsufficientSize) check(result, function);
    for (unsigned i = 0; i < count && i < kMostProcesses; ++i) {
        all.push_back({found[i].pid, graphics});
    }
}

std::vector<Nvml::Process> Nvml::processes(Device device) const {
    std::vector<Process> all;
    addProcesses(compute_processes_, device, false, all);
    addProcesses(graphics_processes_, device, true, all);
    return all;
}

void Nvml::watchXids(Device device) {
    if (make_events_ == nullptr || event_types_ == nullptr || register_events_ == nullptr ||
        wait_event_ == nullptr) {
        return;
    }
    unsigned long long types = 0;
    if (!answered(event_types_(device, &types), "nvmlDeviceGetSupportedEventTypes")) return;
    if ((types & kXid) == 0) return;
    if (events_ == nullptr) check(make_events_(&events_), "nvmlEventSetCreate");
    static_cast<void>(
        answered(register_events_(device, kXid, events_), "nvmlDeviceRegisterEvents"));
}

std::optional<Nvml::Xid> Nvml::nextXid(std::chrono::milliseconds limit) const {
    if (events_ == nullptr) return std::nullopt;
    EventData event{};
    const int result = wait_event_(events_, &event, static_cast<unsigned>(limit.count()));
    if (result == NvmlError::Timeout) return std::nullopt;
    check(result, "nvmlEventSetWait_v2");
    if (event.type != kXid) return std::nullopt;
    return Xid{
        uuid(event.device), event.data,
        event.gpu_instance == kNoInstance ? std::nullopt : std::optional(event.gpu_instance)};
}

}  // namespace hearth::pool::gpu
