#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "pool/gpu/nvml/SharedLibrary.h"

namespace hearth::pool::gpu {

/// A result of NVML that is not success.
class NvmlError : public std::runtime_error {
public:
    /// The results that are treated separately; others are passed on unchanged.
    enum Code : int {
        NotSupported = 3,
        NoPermission = 4,
        NotFound = 6,
        InsufficientSize = 7,
        Timeout = 10,
        GpuIsLost = 15,
        ResetRequired = 16,
    };
    NvmlError(int code, const std::string& message) : std::runtime_error(message), code_(code) {}
    int code() const noexcept { return code_; }

private:
    int code_;
};

/// NVIDIA's management library, loaded at run time. Functions, structures and numbers come from
/// NVIDIA's "NVML API Reference Guide" (docs.nvidia.com/deploy/nvml-api). Every call may block for
/// as long as the driver does, and throws NvmlError unless it says otherwise. One thread.
class Nvml {
public:
    using Device = void*;

    /// A process that uses a device.
    struct Process {
        std::uint32_t pid = 0;
        bool graphics = false;
    };
    /// A critical error that the driver reported.
    struct Xid {
        std::string uuid;
        std::uint64_t number = 0;
        std::optional<std::uint32_t> gpu_instance;  ///< set if it hit only this MIG instance
    };

    /// Loads and starts the library. Throws std::runtime_error with a text for an operator.
    explicit Nvml(const std::string& library);
    ~Nvml();
    Nvml(const Nvml&) = delete;
    Nvml& operator=(const Nvml&) = delete;

    std::uint32_t count() const;
    Device byIndex(std::uint32_t index) const;
    Device byUuid(const std::string& uuid) const;
    std::string uuid(Device device) const;
    std::string name(Device device) const;
    std::uint64_t memoryBytes(Device device) const;
    /// Returns false if there is no such mode.
    bool splitIntoInstances(Device device) const;
    /// Returns the MIG instances of a device.
    std::vector<Device> instances(Device device) const;
    /// Returns "3g.40gb", "1c.3g.40gb"; empty if it cannot be known.
    std::string profile(Device instance) const;
    std::optional<std::uint32_t> gpuInstance(Device instance) const;
    /// Counts since the driver was loaded; nullopt if they are not counted.
    std::optional<std::uint64_t> uncorrectedErrors(Device device) const;
    bool retiredPagesPending(Device device) const;
    bool rowRemappingFailed(Device device) const;
    /// Returns all processes that have a context on the device.
    std::vector<Process> processes(Device device) const;

    /// Keeps later critical errors of the device for nextXid(). Does nothing if it has none.
    void watchXids(Device device);
    /// Returns the next critical error; nullopt if there was none within `limit`.
    std::optional<Xid> nextXid(std::chrono::milliseconds limit) const;

private:
    // nvmlMemory_t
    struct Memory {
        unsigned long long total;
        unsigned long long free;
        unsigned long long used;
    };
    // nvmlDeviceAttributes_t
    struct Attributes {
        unsigned multiprocessors;
        unsigned engines[5];  // copy, decoder, encoder, JPEG, optical flow
        unsigned gpu_slices;
        unsigned compute_slices;
        unsigned long long memory_mib;
    };
    // nvmlProcessInfo_t
    struct ProcessInfo {
        unsigned pid;
        unsigned long long used_memory;
        unsigned gpu_instance;
        unsigned compute_instance;
    };
    // nvmlEventData_t
    struct EventData {
        Device device;
        unsigned long long type;
        unsigned long long data;
        unsigned gpu_instance;
        unsigned compute_instance;
    };
    using GetProcesses = int (*)(Device, unsigned*, ProcessInfo*);

    void check(int result, const char* function) const;
    bool answered(int result, const char* function) const;
    std::string text(int (*get)(Device, char*, unsigned), Device device,
                     const char* function) const;
    void addProcesses(GetProcesses get, Device device, bool graphics,
                      std::vector<Process>& all) const;

    SharedLibrary library_;
    int (*init_)();
    int (*shutdown_)();
    const char* (*error_string_)(int);
    int (*count_)(unsigned*);
    int (*by_index_)(unsigned, Device*);
    int (*by_uuid_)(const char*, Device*);
    int (*uuid_)(Device, char*, unsigned);
    int (*name_)(Device, char*, unsigned);
    int (*memory_)(Device, Memory*);
    int (*mig_mode_)(Device, unsigned*, unsigned*);
    int (*most_instances_)(Device, unsigned*);
    int (*instance_)(Device, unsigned, Device*);
    int (*attributes_)(Device, Attributes*);
    int (*gpu_instance_)(Device, unsigned*);
    int (*ecc_errors_)(Device, int, int, unsigned long long*);
    int (*retired_pending_)(Device, int*);
    int (*remapped_rows_)(Device, unsigned*, unsigned*, unsigned*, unsigned*);
    GetProcesses compute_processes_;
    GetProcesses graphics_processes_;
    int (*make_events_)(void**);
    int (*event_types_)(Device, unsigned long long*);
    int (*register_events_)(Device, unsigned long long, void*);
    int (*wait_event_)(void*, EventData*, unsigned);
    void* events_ = nullptr;
};

}  // namespace hearth::pool::gpu
