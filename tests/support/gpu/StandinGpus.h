#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/support/Support.h"

namespace hearth::test {

/// A machine's GPUs as files, for the stand-in libraries: tests/support/gpu/README.md. Only one at
/// a time, since the environment names it.
class StandinGpus {
public:
    static constexpr std::uint64_t kMemory = 80ULL << 20U;

    StandinGpus() { ::setenv("HEARTH_GPU_STANDIN", folder_.path().c_str(), 1); }
    ~StandinGpus() { ::unsetenv("HEARTH_GPU_STANDIN"); }
    StandinGpus(const StandinGpus&) = delete;
    StandinGpus& operator=(const StandinGpus&) = delete;

    /// Returns "GPU-0000000N-1111-2222-3333-444444444444".
    static std::string uuid(int index, const std::string& kind = "GPU") {
        return kind + "-0000000" + std::to_string(index) + "-1111-2222-3333-444444444444";
    }

    /// Adds a healthy device; `name` is its folder: "gpu0", "gpu0/mig0".
    void add(const std::string& name, const std::string& uuid,
             const std::string& product = "NVIDIA Standin 80MB") {
        std::filesystem::create_directories(folder_.file(name));
        set(name + "/uuid", uuid);
        set(name + "/name", product);
        set(name + "/memory", std::to_string(kMemory));
    }
    void set(const std::string& file, const std::string& text = "") const {
        writeText(folder_.file(file), text);
    }
    void clear(const std::string& file) const { std::filesystem::remove(folder_.file(file)); }
    bool has(const std::string& file) const { return std::filesystem::exists(folder_.file(file)); }

    /// Acts like a tenant: writes its words all over the device's memory.
    void leaveTraces(const std::string& name) const {
        std::string memory;
        while (memory.size() < kMemory) memory += kTrace;
        memory.resize(kMemory);
        set(name + "/memory.bin", memory);
    }
    /// Returns how many of these words can be read there.
    std::size_t traces(const std::string& name) const {
        const std::string memory = readText(folder_.file(name + "/memory.bin"));
        std::size_t found = 0;
        for (std::size_t at = memory.find(kTrace); at != std::string::npos;
             at = memory.find(kTrace, at + 1)) {
            ++found;
        }
        return found;
    }
    /// True if every byte of its memory is zero.
    bool blank(const std::string& name) const {
        const std::string memory = readText(folder_.file(name + "/memory.bin"));
        return memory.size() == kMemory && memory.find_first_not_of('\0') == std::string::npos;
    }

private:
    static constexpr const char* kTrace = "a secret of the last tenant, 64 ";
    TempDir folder_;
};

}  // namespace hearth::test
