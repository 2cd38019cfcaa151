#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

#include "pool/gpu/nvml/SharedLibrary.h"

namespace hearth::pool::gpu {

/// NVIDIA's driver interface for programs, loaded at run time, with a context on one device.
/// Functions and numbers come from NVIDIA's "CUDA Driver API" (docs.nvidia.com/cuda). Every call
/// may block for as long as the driver does, and throws std::runtime_error. One thread.
class Cuda {
public:
    using Address = unsigned long long;
    struct Memory {
        std::uint64_t free = 0;
        std::uint64_t total = 0;
    };

    /// Opens the device with this uuid and no other. Changes the environment, which the driver
    /// reads only once: so only one object in the life of a process.
    Cuda(const std::string& library, const std::string& uuid);
    ~Cuda();
    Cuda(const Cuda&) = delete;
    Cuda& operator=(const Cuda&) = delete;

    Memory memory() const;
    /// Returns nullopt if there is no memory for it.
    std::optional<Address> allocate(std::uint64_t bytes) const;
    void free(Address at) const;
    /// Sets 4-byte words, and waits until that is done.
    void fill(Address at, std::uint32_t word, std::uint64_t words) const;
    void read(void* to, Address from, std::uint64_t bytes) const;
    /// Returns how many of `words` words are `word`. The device itself counts them, into the 8
    /// bytes at `counter`, so a program that did nothing finds none. nullopt if the device cannot
    /// run this program (before Volta).
    std::optional<std::uint64_t> matches(Address at, std::uint32_t word, std::uint64_t words,
                                         Address counter);

private:
    void check(int result, const char* function) const;
    void openDevice(const std::string& uuid);
    void loadProgram();

    SharedLibrary library_;
    int (*init_)(unsigned);
    int (*error_string_)(int, const char**);
    int (*device_count_)(int*);
    int (*device_)(int*, int);
    int (*device_uuid_)(unsigned char*, int);
    int (*make_context_)(void**, unsigned, int);
    int (*end_context_)(void*);
    int (*memory_)(std::size_t*, std::size_t*);
    int (*allocate_)(Address*, std::size_t);
    int (*free_)(Address);
    int (*fill_)(Address, unsigned, std::size_t);
    int (*synchronize_)();
    int (*read_)(void*, Address, std::size_t);
    // Null in a library that has no programs for devices.
    int (*load_)(void**, const void*);
    int (*function_)(void**, void*, const char*);
    int (*launch_)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                   void*, void**, void**);
    void* context_ = nullptr;
    void* counting_ = nullptr;  ///< the loaded program; null until its first use, or if none
    bool tried_ = false;        ///< true once loading was tried
};

}  // namespace hearth::pool::gpu
