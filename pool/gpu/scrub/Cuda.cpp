#include "pool/gpu/scrub/Cuda.h"

#include <array>
#include <cstdlib>

namespace hearth::pool::gpu {
namespace {

constexpr int kCudaSuccess = 0;
constexpr int kOutOfMemory = 2;  // CUDA_ERROR_OUT_OF_MEMORY

/// "GPU-" or "MIG-" of a uuid is not part of its 16 bytes.
std::string digitsOf(const std::string& uuid) {
    std::string digits;
    for (const char c : uuid.substr(4)) {
        if (c != '-') digits += c;
    }
    return digits;
}

std::string digitsOf(const std::array<unsigned char, 16>& bytes) {
    constexpr std::string_view kHex = "0123456789abcdef";
    std::string digits;
    for (const unsigned char byte : bytes) {
        digits += kHex[byte >> 4U];
        digits += kHex[byte & 15U];
    }
    return digits;
}

}  // namespace

Cuda::Cuda(const std::string& library, const std::string& uuid)
    : library_(library, "CUDA's driver library",
               "install NVIDIA's driver, which brings it (Debian, non-free: libcuda1)") {
    library_.need(init_, "cuInit");
    library_.need(error_string_, "cuGetErrorString");
    library_.need(device_count_, "cuDeviceGetCount");
    library_.need(device_, "cuDeviceGet");
    library_.need(device_uuid_, "cuDeviceGetUuid_v2", "cuDeviceGetUuid");
    library_.need(make_context_, "cuCtxCreate_v2");
    library_.need(end_context_, "cuCtxDestroy_v2");
    library_.need(memory_, "cuMemGetInfo_v2");
    library_.need(allocate_, "cuMemAlloc_v2");
    library_.need(free_, "cuMemFree_v2");
    library_.need(fill_, "cuMemsetD32_v2");
    library_.need(synchronize_, "cuCtxSynchronize");
    library_.need(read_, "cuMemcpyDtoH_v2");
    ::setenv("CUDA_VISIBLE_DEVICES", uuid.c_str(), 1);
    ::setenv("CUDA_CACHE_DISABLE", "1", 1);
    check(init_(0), "cuInit");
    openDevice(uuid);
}

Cuda::~Cuda() {
    if (context_ != nullptr) end_context_(context_);
}

void Cuda::openDevice(const std::string& uuid) {
    int count = 0;
    check(device_count_(&count), "cuDeviceGetCount");
    if (count != 1) {
        throw std::runtime_error("CUDA finds " + std::to_string(count) + " devices of uuid " +
                                 uuid + ", not one");
    }
    int device = 0;
    check(device_(&device, 0), "cuDeviceGet");
    std::array<unsigned char, 16> found{};
    check(device_uuid_(found.data(), device), "cuDeviceGetUuid");
    if (digitsOf(found) != digitsOf(uuid)) {
        throw std::runtime_error("CUDA opened another device, with the digits " + digitsOf(found) +
                                 ", in place of " + uuid);
    }
    check(make_context_(&context_, 0, device), "cuCtxCreate_v2");
}

void Cuda::check(int result, const char* function) const {
    if (result == kCudaSuccess) return;
    const char* words = nullptr;
    error_string_(result, &words);
    throw std::runtime_error(std::string(function) + ": " +
                             (words == nullptr ? "unknown error" : words) + " (" +
                             std::to_string(result) + ")");
}

Cuda::Memory Cuda::memory() const {
    std::size_t free = 0;
    std::size_t total = 0;
    check(memory_(&free, &total), "cuMemGetInfo_v2");
    return {free, total};
}

std::optional<Cuda::Address> Cuda::allocate(std::uint64_t bytes) const {
    Address at = 0;
    const int result = allocate_(&at, bytes);
    if (result == kOutOfMemory) return std::nullopt;
    check(result, "cuMemAlloc_v2");
    return at;
}

void Cuda::free(Address at) const {
    check(free_(at), "cuMemFree_v2");
}

void Cuda::fill(Address at, std::uint32_t word, std::uint64_t words) const {
    check(fill_(at, word, words), "cuMemsetD32_v2");
    check(synchronize_(), "cuCtxSynchronize");
}

void Cuda::read(void* to, Address from, std::uint64_t bytes) const {
    check(read_(to, from, bytes), "cuMemcpyDtoH_v2");
}

}  // namespace hearth::pool::gpu
