#include "pool/gpu/scrub/Cuda.h"

#include <array>
#include <cstdlib>

namespace hearth::pool::gpu {
namespace {

constexpr int kCudaSuccess = 0;
constexpr int kOutOfMemory = 2;  // CUDA_ERROR_OUT_OF_MEMORY

constexpr unsigned kGroups = 2048;
constexpr unsigned kThreads = 256;
/// A program in PTX, the assembly language of NVIDIA's drivers
/// (docs.nvidia.com/cuda/parallel-thread-execution): each thread counts, at a fixed stride, the
/// words that match, then adds its count to the counter.
constexpr const char* kProgram = R"(
.version 6.4
.target sm_70
.address_size 64
.visible .entry matches(.param .u64 at, .param .u64 words, .param .u32 word, .param .u64 counter)
{
    .reg .pred %p;
    .reg .b32 %expected, %found, %x, %y, %z;
    .reg .b64 %base, %words, %counter, %index, %step, %place, %same;
    ld.param.u64 %base, [at];
    ld.param.u64 %words, [words];
    ld.param.u32 %expected, [word];
    ld.param.u64 %counter, [counter];
    cvta.to.global.u64 %base, %base;
    cvta.to.global.u64 %counter, %counter;
    mov.u32 %x, %ctaid.x;
    mov.u32 %y, %ntid.x;
    mov.u32 %z, %tid.x;
    mul.wide.u32 %index, %x, %y;
    cvt.u64.u32 %place, %z;
    add.s64 %index, %index, %place;
    mov.u32 %x, %nctaid.x;
    mul.wide.u32 %step, %x, %y;
    mov.u64 %same, 0;
next:
    setp.ge.u64 %p, %index, %words;
    @%p bra done;
    shl.b64 %place, %index, 2;
    add.s64 %place, %base, %place;
    ld.global.u32 %found, [%place];
    setp.eq.u32 %p, %found, %expected;
    @%p add.s64 %same, %same, 1;
    add.s64 %index, %index, %step;
    bra next;
done:
    setp.eq.u64 %p, %same, 0;
    @%p ret;
    red.global.add.u64 [%counter], %same;
    ret;
}
)";

/// Returns the digits of the 16 bytes; "GPU-" or "MIG-" is not part of them.
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
    library_.find(load_, "cuModuleLoadData");
    library_.find(function_, "cuModuleGetFunction");
    library_.find(launch_, "cuLaunchKernel");
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

void Cuda::loadProgram() {
    tried_ = true;
    if (load_ == nullptr || function_ == nullptr || launch_ == nullptr) return;
    void* module = nullptr;
    if (load_(&module, kProgram) != kCudaSuccess) return;
    if (function_(&counting_, module, "matches") != kCudaSuccess) counting_ = nullptr;
}

std::optional<std::uint64_t> Cuda::matches(Address at, std::uint32_t word, std::uint64_t words,
                                           Address counter) {
    if (!tried_) loadProgram();
    if (counting_ == nullptr) return std::nullopt;
    fill(counter, 0, 2);
    std::array<void*, 4> arguments{&at, &words, &word, &counter};
    if (launch_(counting_, kGroups, 1, 1, kThreads, 1, 1, 0, nullptr, arguments.data(), nullptr) !=
        kCudaSuccess) {
        counting_ = nullptr;  // if a device refuses it, the host compares
        return std::nullopt;
    }
    check(synchronize_(), "cuCtxSynchronize");
    std::uint64_t found = 0;
    read(&found, counter, sizeof(found));
    return found;
}

}  // namespace hearth::pool::gpu
